package compare

import (
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

// settings are what the flags say.
type settings struct {
	limit    int // starts a second
	burst    int // of the buckets that have one
	wait     time.Duration
	arrivals string
	out      string
}

// A scene is one pattern put to all limiters.
type scene struct {
	pattern
	arrivals []sim.Arrival
	end      time.Duration // a second and a bit after the last start: by then all is quiet
	results  []result
}

// A result is what one limiter made of it.
type result struct {
	limiter
	sim.Outcome
	peak int // starts in the fullest second
}

// A limiter is one that is compared.
type limiter struct {
	name  string
	short string // for a narrow column
	ours  bool
	law   func(s settings) int
	make  func(c *sim.Clock, s settings) (sim.Limiter, error)
}

func wholeLimit(s settings) int { return s.limit }
func withBurst(s settings) int  { return s.limit + s.burst }

var limiters = []limiter{
	{"Fixed window", "fixed window", false, wholeLimit, func(c *sim.Clock, s settings) (sim.Limiter, error) {
		return &fixedWindow{clock: c, limit: s.limit}, nil
	}},
	{"Sliding window", "sliding window", false, wholeLimit, func(c *sim.Clock, s settings) (sim.Limiter, error) {
		return &slidingWindow{clock: c, limit: s.limit}, nil
	}},
	{"Token bucket as in x/time/rate", "x/time/rate", false, withBurst, func(c *sim.Clock, s settings) (sim.Limiter, error) {
		return &clamp{clock: c, rate: float64(s.limit), burst: float64(s.burst), tokens: float64(s.burst), most: s.wait}, nil
	}},
	{"Token bucket: sluice/waiter", "sluice/waiter", true, withBurst, func(c *sim.Clock, s settings) (sim.Limiter, error) {
		return sim.Bucket(c, waiter.Config{Rate: rate(s), Burst: s.burst, MaxWait: s.wait})
	}},
	{"Leaky bucket: sluice/leaky", "sluice/leaky", true, wholeLimit, func(c *sim.Clock, s settings) (sim.Limiter, error) {
		return sim.Pacer(c, leaky.Config{Rate: rate(s), Capacity: 1 + int(rate(s).UnitsIn(s.wait))})
	}},
}

func rate(s settings) sluice.Rate { return sluice.PerSecond(int64(s.limit)) }

// play puts the patterns that were asked for to all limiters.
func play(s settings) ([]scene, error) {
	var scenes []scene
	for _, p := range patterns {
		if s.arrivals != "all" && s.arrivals != p.name {
			continue
		}
		sc := scene{pattern: p, arrivals: p.make(s.limit)}
		last := sc.arrivals[len(sc.arrivals)-1].At
		for _, l := range limiters {
			var clock sim.Clock
			model, err := l.make(&clock, s)
			if err != nil {
				return nil, err
			}
			out := sim.Run(&clock, sc.arrivals, model)
			if n := len(out.Starts); n > 0 {
				last = max(last, out.Starts[n-1])
			}
			sc.results = append(sc.results, result{l, out, out.Peak(time.Second)})
		}
		sc.end = (last + 2*time.Second).Truncate(time.Second)
		scenes = append(scenes, sc)
	}
	return scenes, nil
}

// broke says whether the limiter let more through than it was told, and not what a burst explains.
func (r result) broke(s settings) bool { return r.peak > r.law(s) }
