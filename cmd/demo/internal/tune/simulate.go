package tune

import (
	"fmt"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

// An outcome is what the advised limiter makes of the arrivals, on a virtual clock.
type outcome struct {
	sim.Outcome
	fullest int // starts in the fullest window of the limit
	atOnce  int // calls that ran at once
}

// simulate puts the limiter of sluice's that the advice names under the arrivals.
func (nd need) simulate(a advice) (outcome, error) {
	var clock sim.Clock
	var l sim.Limiter
	var err error
	if a.burst == 1 {
		l, err = sim.Pacer(&clock, leaky.Config{Rate: a.rate, Capacity: a.capacity})
	} else {
		l, err = sim.Bucket(&clock, waiter.Config{Rate: a.rate, Burst: a.burst, MaxWait: a.maxWait, MaxWaiters: a.capacity})
	}
	if err != nil {
		return outcome{}, err
	}
	arrivals := make([]sim.Arrival, len(nd.arrivals))
	for i, at := range nd.arrivals {
		arrivals[i].At = at
	}
	out := outcome{Outcome: sim.Run(&clock, arrivals, l)}
	out.fullest = out.Peak(nd.limit.per)
	if nd.handler > 0 {
		out.atOnce = out.Peak(nd.handler)
	}
	return out, nil
}

// wrongs says which of the user's numbers the outcome does not keep; none, if the advice is right.
func (nd need) wrongs(a advice, o outcome) []string {
	var found []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	add(o.Refused > 0, "%d were refused", o.Refused)
	add(o.Longest() > nd.wait, "somebody waited %v, tolerated are %v", o.Longest(), nd.wait)
	add(int64(o.fullest) > nd.limit.n, "%d started within %v, the limit is %v", o.fullest, nd.limit.per, nd.limit)
	add(nd.slots > 0 && o.atOnce > nd.slots, "%d ran at once, there are %d slots", o.atOnce, nd.slots)
	add(o.atOnce > a.concurrency, "%d ran at once, the advice was %d", o.atOnce, a.concurrency)
	return found
}

// mean is how many arrive in a second.
func (nd need) mean() float64 {
	span := nd.arrivals[len(nd.arrivals)-1]
	return float64(len(nd.arrivals)) / max(1, span.Seconds())
}

// crest is the most that arrive within a window.
func (nd need) crest(window time.Duration) int {
	return (&sim.Outcome{Starts: nd.arrivals}).Peak(window)
}
