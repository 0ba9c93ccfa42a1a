"use strict";

const byId = (id) => document.getElementById(id);
const knobs = ["rate", "burst", "capacity", "arrivals"];
const most = 300; // frames: 30 s at ten a second
const frames = [];

// Sliders: what is typed or dragged goes out at once, and the last value wins. While somebody turns one, the server's
// echo of an older value must not pull it back.
const held = {}; // until when a knob belongs to the hand

for (const name of knobs) {
  const input = byId(name);
  input.addEventListener("input", () => {
    held[name] = Date.now() + 1000;
    show(name, input.value);
    send(name);
  });
}

function show(name, value) {
  byId(name + "-value").textContent = Number(value).toLocaleString("en");
}

const pending = {};

async function send(name) {
  if (pending[name]) { pending[name] = "again"; return; }
  pending[name] = "once";
  try {
    const answer = await fetch("knobs", { method: "POST", body: JSON.stringify({ [name]: Number(byId(name).value) }) });
    if (!answer.ok) say(await answer.text());
  } catch { say("That did not arrive."); }
  const again = pending[name] === "again";
  delete pending[name];
  if (again) send(name);
}

async function deed(path, done) {
  try {
    const answer = await fetch(path, { method: "POST" });
    say(answer.ok ? done : await answer.text());
  } catch { say("That did not arrive."); }
}

byId("drop").addEventListener("click", () => deed("drop", "500 jobs dropped."));
byId("busy").addEventListener("click", () => deed("busy", "The service behind answers 429 for 3 s."));

function say(text) { byId("said").textContent = text; }

// Frames: the books, ten times a second.
const source = new EventSource("frames");
source.onopen = () => { connection("Live."); };
source.onerror = () => { connection("The demo has ended, or cannot be reached.", true); };
source.onmessage = (event) => {
  const frame = JSON.parse(event.data);
  frame.allowed = frame.rate + frame.burst;
  frames.push(frame);
  if (frames.length > most) frames.shift();
  for (const name of knobs) {
    if ((held[name] || 0) > Date.now() || document.activeElement === byId(name) && pending[name]) continue;
    byId(name).value = frame[name];
    show(name, frame[name]);
  }
  count("starts-now", frame.startsNow);
  count("line-now", frame.line);
  count("deferred-now", frame.deferredNow);
  for (const name of ["arrived", "starts", "done", "deferred", "told", "refused"]) count(name + "-all", frame[name]);
};

function connection(text, lost) {
  byId("connection").textContent = text;
  byId("connection").classList.toggle("lost", Boolean(lost));
}

function count(id, n) { byId(id).textContent = n.toLocaleString("en"); }

// A second that began under another limit may hold what that one allowed.
function allowed(i) {
  let most = 0;
  for (let k = Math.max(0, i - 10); k <= i; k++) most = Math.max(most, frames[k].allowed);
  return most;
}

// Charts: the newest frame is at the right edge. A young page shows ten seconds, an older one thirty.
const shown = () => Math.min(most, Math.max(100, frames.length));

function nice(n) {
  const step = 10 ** Math.floor(Math.log10(Math.max(10, n)));
  return step * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((k) => n <= k * step);
}

// draw scales to all series but those that may run out of the picture: 500 arrivals at once would flatten the starts.
function draw(id, series) {
  const svg = byId(id);
  const span = shown();
  const all = series.map((s) => frames.map((f, i) => s.value(f, i)));
  let top = 0;
  all.forEach((values, k) => { if (!series[k].beyond) for (const v of values) top = Math.max(top, v); });
  top = nice(top * 1.1);
  svg.setAttribute("viewBox", `0 0 ${span - 1} 100`);
  svg.setAttribute("preserveAspectRatio", "none");
  const from = span - frames.length;
  const paths = [];
  series.forEach((s, k) => {
    const points = all[k].map((v, i) => `${from + i} ${(100 - 100 * v / top).toFixed(2)}`);
    if (s.area) paths.push([`M${from} 100L${points.join("L")}L${span - 1} 100Z`, "area", s.tone]);
    paths.push([`M${points.join("L")}`, "", s.tone]);
  });
  while (svg.children.length < paths.length) svg.append(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  paths.forEach(([d, kind, tone], i) => {
    const path = svg.children[i];
    path.setAttribute("d", d);
    path.setAttribute("class", kind);
    path.style.stroke = kind === "area" ? "none" : `var(--${tone})`;
    path.style.fill = kind === "area" ? `var(--${tone})` : "none";
  });
  svg.parentElement.querySelector(".top").textContent = top.toLocaleString("en");
}

function paint() {
  draw("flow", [
    { value: (f, i) => allowed(i), tone: "bound", area: true },
    { value: (f) => f.arrivedNow, tone: "came", beyond: true },
    { value: (f) => f.startsNow, tone: "fine", area: true },
  ]);
  draw("line", [{ value: (f) => f.line, tone: "line", area: true }]);
  draw("deferred", [{ value: (f) => f.deferredNow, tone: "deferred", area: true }]);
  byId("oldest").textContent = `${shown() / 10 | 0} s ago`;
}

setInterval(() => { if (frames.length > 0 && !document.hidden) paint(); }, 100);
