package tune

import (
	"time"

	"github.com/fadf4e53/sluice"
)

// A need is what the user knows.
type need struct {
	limit    quota
	slots    int           // calls that the downstream takes at once; 0: as many as come
	handler  time.Duration // one call
	wait     time.Duration // longest that anybody may wait
	arrivals []time.Duration
}

// A plan is a token bucket that keeps the downstream whole, whatever comes: rate and burst.
type plan struct {
	rate    sluice.Rate
	burst   int
	bySlots bool          // the slots, not the limit, bound the rate
	longest time.Duration // that anybody of the arrivals waits
}

// plan returns the fastest rate that goes with a burst; false: that burst alone is too much. Its longest wait is exact up
// to enough; beyond that it is somewhere beyond.
//
// In any window of per at most burst + rate·per start, so the rate is what the burst leaves of the limit. With a burst
// of 1 starts are evenly spaced and the whole limit can be the rate. Likewise for the calls that run at once, which are
// the starts of the last handler time.
func (nd need) plan(burst int, enough time.Duration) (plan, bool) {
	n := nd.limit.n
	if burst > 1 {
		n -= int64(burst)
	}
	if n < 1 || nd.slots > 0 && burst > nd.slots {
		return plan{}, false
	}
	p := plan{rate: sluice.Per(n, nd.limit.per), burst: burst}
	if nd.slots > 0 && nd.handler > 0 {
		if r := sluice.Per(int64(nd.slots-burst+1), nd.handler); slower(r, p.rate) {
			p.rate, p.bySlots = r, true
		}
	}
	p.longest = longestWait(nd.arrivals, p.rate, burst, enough)
	return p, true
}

// bursts are the bursts that are tried: each up to 64, then each a fifth more than the one before.
func bursts() []int {
	var all []int
	for b := 1; b <= most; b += max(1, b/5*min(1, b/64)) {
		all = append(all, b)
	}
	return all
}

// best returns the plan with the least burst that makes nobody wait too long: a burst strains the downstream, and costs
// rate. If there is none, it returns the plan with the shortest wait.
func (nd need) best() (p plan, fits bool) {
	p.longest = sluice.Never
	for _, b := range bursts() {
		tried, ok := nd.plan(b, p.longest)
		if !ok {
			break
		}
		if p.burst == 0 || tried.longest < p.longest {
			p = tried
		}
		if p.longest <= nd.wait {
			return p, true
		}
	}
	return p, false
}
