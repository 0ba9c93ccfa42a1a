package law

import "time"

const (
	// Patience is the longest stall that may excuse anything. Behind a longer one a broken limit could hide.
	Patience = 200 * time.Millisecond

	// ordinary is how late a timer may always be.
	ordinary = beat

	// settle is how long after a stall what came due in it may still be starting.
	settle = 5 * time.Millisecond
)

// A Verdict is what starts say about their limit. A later one is worse.
type Verdict int

const (
	Held    Verdict = iota
	Delayed         // more than allowed, but no more than what a stall explains that touched the same window
	Unclear         // the same, but the stall is too long for that to show anything
	Broken          // more than that
)

// A Finding is a Verdict and the window that it rests on: the worst one.
type Finding struct {
	Verdict Verdict
	At      time.Duration // where the window begins
	Starts  int           // in it
	Late    time.Duration // the longest stall that touched it
}

// Judge looks at every window that begins with a start. starts are in order.
func (l Limit) Judge(starts []time.Duration, stalls []Stall) Finding {
	worst := Finding{Starts: Peak(starts)}
	end := 0
	for i, at := range starts {
		for end < len(starts) && starts[end]-at <= Window {
			end++
		}
		f := l.window(at, end-i, stalls)
		if f.Verdict > worst.Verdict || f.Verdict == worst.Verdict && f.Verdict > Held && f.Starts > worst.Starts {
			worst = f
		}
	}
	return worst
}

// window judges one. A stall anywhere else in the run excuses nothing here: what came due in it started at its end.
func (l Limit) window(at time.Duration, n int, stalls []Stall) Finding {
	f := Finding{At: at, Starts: n}
	if n <= l.Allowed(0) {
		return f
	}
	late := time.Duration(0)
	for _, s := range stalls {
		if s.From <= at+Window && at <= s.To+settle {
			late = max(late, s.To-s.From)
		}
	}
	f.Late = max(late, ordinary)
	switch {
	case n > l.Allowed(f.Late):
		f.Verdict = Broken
	case f.Late > Patience:
		f.Verdict = Unclear
	default:
		f.Verdict = Delayed
	}
	return f
}
