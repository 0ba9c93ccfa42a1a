package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// A row is what a scenario showed.
type row struct {
	who          string
	done, of     int
	drain, ideal time.Duration // ideal 0: it has no drain
	deferrals    float64       // a finished task under a limit
	commands     float64       // a finished task
	peak, law    int           // starts in any second of the limit that came nearest to its law, and that law
	free         bool          // whether there was unlimited work
	median, max  time.Duration // its latency
	stall        time.Duration // how late goroutines ran, at most
	archived     int
	failed       int
	retried      int
	lost         int
	twice        int

	notes  []string
	missed []string
}

// target notes what was measured, and whether that is what was wanted.
func (r *row) target(ok bool, format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !ok {
		r.missed = append(r.missed, s)
	}
	r.notes = append(r.notes, s)
}

// unharmed is the target of every scenario: nothing archived, failed, retried, lost or run twice, and the law kept.
func (r *row) unharmed() {
	for _, c := range []struct {
		n    int
		what string
	}{{r.archived, "archived"}, {r.failed, "failed"}, {r.retried, "retried"}, {r.lost, "lost"}, {r.twice, "run twice"}} {
		if c.n != 0 {
			r.missed = append(r.missed, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	if late := int(float64(r.law-1) * r.stall.Seconds()); r.peak > r.law+late {
		r.missed = append(r.missed, fmt.Sprintf("%d starts in a second, %d allowed, and %d noted late", r.peak, r.law, late))
	}
}

// fill takes over what every scenario shows. Limits names the kinds that are limited and their rates a second.
func (r *row) fill(w *world, limits map[string]int) {
	r.done, r.of = w.n("done", ""), w.queued
	limited := 0
	for kind, rate := range limits {
		limited += w.n("done", kind)
		if peak := w.peak(kind, time.Second); r.law == 0 || peak-rate-1 >= r.peak-r.law {
			r.peak, r.law = peak, rate+1
		}
	}
	r.deferrals = float64(w.n("defer", "")) / float64(max(1, limited))
	r.commands = float64(w.commands()) / float64(max(1, r.done))
	w.mu.Lock()
	r.stall = w.stall
	w.mu.Unlock()
	left := 0
	left, r.archived, r.failed = w.inRedis()
	r.retried, r.twice = w.retried(), w.twice()
	r.lost = max(0, r.of-r.done-left-r.archived)
}

const head = `| scenario | | done | drain | × ideal | deferrals a finished task | commands a finished task | peak in 1 s (law) | unlimited: median, max | archived | failed | retried | lost | twice | targets |
|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|
`

func (r *row) print(out io.Writer, name string) {
	drain, ratio, free := "", "", ""
	if r.drain > 0 {
		drain = fmt.Sprintf("%.2f s", r.drain.Seconds())
	}
	if r.ideal > 0 && r.drain > 0 {
		ratio = fmt.Sprintf("%.3f", r.drain.Seconds()/r.ideal.Seconds())
	}
	if r.free {
		free = fmt.Sprintf("%s, %s", short(r.median), short(r.max))
	}
	if r.peak > r.law {
		r.notes = append(r.notes, fmt.Sprintf("goroutines ran up to %s late", short(r.stall)))
	}
	verdict := strings.Join(r.notes, "; ")
	if len(r.missed) > 0 {
		verdict += " **missed: " + strings.Join(r.missed, "; ") + "**"
	}
	done := fmt.Sprint(r.done)
	if r.done != r.of {
		done = fmt.Sprintf("%d of %d", r.done, r.of)
	}
	fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %.2f | %.1f | %d (%d) | %s | %d | %d | %d | %d | %d | %s |\n",
		name, r.who, done, drain, ratio, r.deferrals, r.commands, r.peak, r.law, free,
		r.archived, r.failed, r.retried, r.lost, r.twice, verdict)
}

func short(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
