package compare

import (
	"math"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
)

// A clamp is a token bucket as golang.org/x/time/rate keeps it: tokens are a float that may fall below zero, cut off at
// the burst; who must wait is told the moment when he comes, and that moment never changes. Who hangs up gives back only
// what nobody has come for since: with others behind him nothing, and his turn passes unused.
type clamp struct {
	clock  *sim.Clock
	rate   float64 // tokens a second
	burst  float64
	most   time.Duration // nobody waits longer
	tokens float64
	last   time.Duration // when tokens was true
	newest time.Duration // the latest turn that was given away
}

func (c *clamp) Ask() (sim.Place, bool) {
	now := c.clock.At()
	left := c.level(now) - 1
	wait := time.Duration(0)
	if left < 0 {
		wait = time.Duration(-left / c.rate * float64(time.Second)) // cut off, not rounded up
	}
	if wait > c.most {
		return nil, false
	}
	c.tokens, c.last, c.newest = left, now, now+wait
	return &clampPlace{c, now + wait}, true
}

func (c *clamp) level(now time.Duration) float64 {
	return math.Min(c.burst, c.tokens+(now-c.last).Seconds()*c.rate)
}

type clampPlace struct {
	c    *clamp
	turn time.Duration
}

func (p *clampPlace) Delay() time.Duration { return max(0, p.turn-p.c.clock.At()) }

func (p *clampPlace) Cancel() {
	c := p.c
	now := c.clock.At()
	back := 1 - (c.newest-p.turn).Seconds()*c.rate
	if back <= 0 || p.turn <= now {
		return
	}
	c.tokens, c.last = math.Min(c.burst, c.level(now)+back), now
	if p.turn == c.newest {
		c.newest -= time.Duration(float64(time.Second) / c.rate)
	}
}
