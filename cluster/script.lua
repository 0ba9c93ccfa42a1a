-- One trip of one process: give back, take, pause; all or nothing, in this order.
--
-- KEYS[1] is the limit, one string: tat:rem:pause:far:terms. The debt is paid off at tat µs + rem/den µs: a bucket at
-- rest has none, an empty one owes its burst, and every unit costs 1/rate. Nothing goes before pause, and nobody has
-- been let to owe more than far µs. terms is n/d/burst: n units in d ns.
--
-- ARGV: 1 terms, 2 den, 3 far; 4-5 what to take, in µs and rem; taken only if 6-7 the debt, in µs and rem from now, and
-- 8 the pause, in µs from now, are no longer than this; 9 the tat:rem for which 10-11 is given back; 12 pause for so
-- many µs. All numbers stay below 2^53, where a double is exact, and are written by %.0f: tostring has 14 digits.
local function num(i) return tonumber(ARGV[i]) end
local function text(x) return string.format('%.0f', x) end

local clock = redis.call('TIME') -- once: within a script it stands still in some versions and moves in others
local now = clock[1] * 1000000 + clock[2]
local den, far, given = num(2), num(3), false
local tat, rem, pause, debtor = 0, 0, 0, far

local state = redis.call('GET', KEYS[1])
if state then
  local a, b, c, f, terms = string.match(state, '^(%d+):(%d+):(%d+):(%d+):(%d+/%d+/%d+)$')
  if not a then return redis.error_reply('SLUICE the key ' .. KEYS[1] .. ' holds something else') end
  tat, rem, pause, debtor = tonumber(a), tonumber(b), tonumber(c), math.max(far, tonumber(f))
  local at = math.max(now, pause)
  -- Only the clock's going back leaves more debt than anybody was let to make.
  if tat - at > debtor then tat, rem = at + far, 0 end
  if terms ~= ARGV[1] then
    -- The rate or the burst is another: as many units are owed as before, at what they cost now. What was taken from
    -- the burst is at most the new one; what processes wait for comes on top. Rounded up, this once.
    local n, d, burst = string.match(terms, '(%d+)/(%d+)/(%d+)')
    local newN, newD, newBurst = string.match(ARGV[1], '(%d+)/(%d+)/(%d+)')
    local owed = 0
    if d ~= '0' then owed = math.max(tat + (rem > 0 and 1 or 0) - at, 0) * 1000 * n / d end
    local line = math.max(owed - burst, 0)
    owed = math.min(owed - line, tonumber(newBurst)) + line
    tat, rem = at + math.ceil(owed * newD / newN / 1000), 0
    debtor = math.max(far, tat - at)
  elseif a .. ':' .. b == ARGV[9] then
    given, tat, rem = true, tat - num(10), rem - num(11)
    if rem < 0 then tat, rem = tat - 1, rem + den end
  end
end

local at = math.max(now, pause) -- what comes during a pause stands as if it came at its end
if tat < at then tat, rem, debtor = at, 0, far end

local debt, part = tat - now, rem
local taken = at - now <= num(8) and (debt < num(6) or debt == num(6) and rem <= num(7))
if taken then
  tat, rem = tat + num(4), rem + num(5)
  if rem >= den then tat, rem = tat + 1, rem - den end
end
pause = math.max(pause, num(12) > 0 and now + num(12) or 0)

if given or taken and num(4) + num(5) > 0 or num(12) > 0 then
  -- The key must outlive the debt: a second more, and rounded up.
  local ttl = math.ceil((math.max(tat + 1, pause) - now) / 1000) + 1000
  local value = text(tat) .. ':' .. text(rem) .. ':' .. text(pause) .. ':' .. text(math.max(debtor, tat - at)) .. ':' .. ARGV[1]
  redis.call('SET', KEYS[1], value, 'PX', text(ttl))
end
return {(taken and 1 or 0) + (given and 2 or 0), now, debt, part, math.max(at - now, 0)}
