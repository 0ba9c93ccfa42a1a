package tune

import (
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
)

// An advice is the numbers to set.
type advice struct {
	plan
	capacity    int
	maxWait     time.Duration
	concurrency int
}

// advise completes a plan.
func (nd need) advise(p plan) advice {
	a := advice{plan: p, maxWait: nd.wait}
	// What can start within the wait, and one; or what these arrivals need, which is at most one more.
	needed := p.rate.UnitsIn(p.longest)
	if p.rate.TimeFor(needed) < p.longest {
		needed++
	}
	a.capacity = 1 + int(min(max(p.rate.UnitsIn(nd.wait), needed), most))
	// The starts of the last handler time run at once.
	a.concurrency = int(min(p.within(nd.handler), most))
	return a
}

// A line of the answer: what to set to what, and why.
type line struct{ name, value, why string }

func (nd need) lines(a advice) []line {
	return []line{
		{"Rate", a.rate.String(), nd.whyRate(a.plan)},
		{"Burst", fmt.Sprint(a.burst), nd.whyBurst(a.plan)},
		{"Capacity", fmt.Sprint(a.capacity), fmt.Sprintf("more cannot start within %v: who comes to a longer line is refused at once, and told when to come again", nd.wait)},
		{"MaxWait", a.maxWait.String(), "what you tolerate: who would wait longer is refused on arrival, not after having waited"},
		{"Concurrency", fmt.Sprint(a.concurrency), nd.whyConcurrency(a)},
	}
}

func (nd need) whyRate(p plan) string {
	switch {
	case p.bySlots:
		return fmt.Sprintf("%d calls at once of %v each: faster, and more than that would run together", nd.slots, nd.handler)
	case p.burst == 1:
		return fmt.Sprintf("the whole limit: starts that are evenly spaced are never more than %d in %v", nd.limit.n, nd.limit.per)
	}
	return fmt.Sprintf("the limit less the burst: a bucket that has rested lets both go in %v", nd.limit.per)
}

func (nd need) whyBurst(p plan) string {
	if p.burst == 1 {
		return "without one nobody waits longer than you tolerate, and the downstream gets evenly spaced calls"
	}
	less := p.burst - 1
	if all := bursts(); p.burst > 64 {
		for i, b := range all {
			if b == p.burst {
				less = all[i-1]
			}
		}
	}
	before, _ := nd.plan(less, sluice.Never)
	return fmt.Sprintf("the least that does: with %d somebody would wait %v", less, round(before.longest))
}

func (nd need) whyConcurrency(a advice) string {
	if nd.handler == 0 {
		return "the burst: a call takes no time"
	}
	return fmt.Sprintf("so many of %v run at once when the burst goes; with fewer slots the rate is not reached", nd.handler)
}

// code is the advice as Go.
func (a advice) code() string {
	n, period := a.rate.Fraction()
	if a.burst == 1 {
		return fmt.Sprintf("leaky.New(leaky.Config{Rate: %s, Capacity: %d})", rateCode(n, period), a.capacity)
	}
	return fmt.Sprintf("waiter.New(waiter.Config{Rate: %s, Burst: %d, MaxWait: %s, MaxWaiters: %d})",
		rateCode(n, period), a.burst, spanCode(a.maxWait), a.capacity)
}

func rateCode(n int64, period time.Duration) string {
	if time.Second%period == 0 {
		return fmt.Sprintf("sluice.PerSecond(%d)", n*int64(time.Second/period))
	}
	return fmt.Sprintf("sluice.Per(%d, %s)", n, spanCode(period))
}

func spanCode(d time.Duration) string {
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {time.Microsecond, "Microsecond"}} {
		switch {
		case d == u.d:
			return "time." + u.name
		case d%u.d == 0:
			return fmt.Sprintf("%d*time.%s", d/u.d, u.name)
		}
	}
	return fmt.Sprintf("%d*time.Nanosecond", d)
}

// round cuts what nobody reads.
func round(d time.Duration) time.Duration {
	switch {
	case d == sluice.Never:
		return d
	case d > 10*time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
