package sluicetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var stressChecks = []check{
	{name: "stress/every unit adds up", run: everyUnit, clock: realTime},
	{name: "stress/a Reservation may be shared by goroutines", run: sharedReservations, clock: realTime},
}

const (
	stressFor     = 300 * ms
	stressCallers = 16
	stressBurst   = 50
)

var stressRate = sluice.PerSecond(5000)

// tally adds up what callers were told.
type tally struct{ granted, refused, left, units atomic.Int64 }

func (c *tally) add(err error, n int) {
	var no *sluice.Refusal
	switch {
	case err == nil:
		c.granted.Add(1)
		c.units.Add(int64(n))
	case errors.As(err, &no):
		c.refused.Add(1)
	default:
		c.left.Add(1)
	}
}

// stress lets many goroutines call f for a while, and checks that the limit was kept and nothing is left behind.
func (t *trial) stress(l sluice.Limiter, f func(*rand.Rand)) {
	t.Helper()
	var callers sync.WaitGroup
	for i := range uint64(stressCallers) {
		rng := rand.New(rand.NewPCG(i, 2))
		callers.Go(func() {
			for t.since() < stressFor && !t.Failed() {
				f(rng)
			}
		})
	}
	callers.Wait()

	s := l.Stats()
	took := t.since()
	if t.kind.RealTime { // it may go by the wall clock, which gains on ours while it is being set right
		took = max(took, time.Now().Round(0).Sub(t.began.Round(0)))
	}
	most := stressBurst + stressRate.UnitsIn(took)
	require.LessOrEqual(t, int64(s.Units), most, "units in all: the burst and what has flown since before the limiter was made")
	t.eventually("nobody is in line", func() bool { return l.Stats().Waiting == 0 })
	t.eventually("the limiter is at rest", func() bool { return t.try(l, 0).ResetAfter == 0 })
	require.Equal(t, stressBurst, t.try(l, 0).Remaining)
}

func everyUnit(t *trial) {
	l := t.rested(stressRate, stressBurst)
	var told tally
	t.stress(l, func(rng *rand.Rand) {
		n := 1 + rng.IntN(5)
		switch rng.IntN(4) {
		case 0:
			d, err := l.Try(background, n)
			if err == nil && !d.Allowed {
				err = &sluice.Refusal{}
			}
			told.add(err, n)
		case 1: // mostly refused for the deadline
			ctx, cancel := context.WithTimeout(background, time.Duration(rng.IntN(int(3*ms))))
			told.add(l.Wait(ctx, n), n)
			cancel()
		case 2: // mostly gives up in line
			ctx, cancel := context.WithCancel(background)
			time.AfterFunc(time.Duration(rng.IntN(int(5*ms))), cancel)
			told.add(l.Wait(ctx, n), n)
		default:
			told.add(l.Wait(background, n), n)
		}
	})
	s := l.Stats()
	require.EqualValues(t, told.units.Load(), s.Units, "units")
	require.EqualValues(t, told.granted.Load(), s.Granted, "granted")
	require.EqualValues(t, told.refused.Load(), s.Refused, "refused")
	require.LessOrEqual(t, int64(s.Canceled), told.left.Load(), "canceled: whose ctx was done before never was in line")
	require.Positive(t, told.granted.Load())
}

func sharedReservations(t *trial) {
	l := t.rested(stressRate, stressBurst)
	var started atomic.Int64
	t.stress(l, func(rng *rand.Rand) {
		n := 1 + rng.IntN(5)
		r, err := l.Reserve(background, n)
		if err != nil {
			time.Sleep(ms) // a full bucket
			return
		}
		cancelled := rng.IntN(2) == 0
		after := time.Duration(rng.IntN(int(10 * ms)))
		var owners sync.WaitGroup
		for range 2 {
			owners.Go(func() {
				ctx, cancel := context.WithTimeout(background, 10*time.Second)
				defer cancel()
				if err := r.Wait(ctx); err != nil && !cancelled {
					t.Errorf("Reservation.Wait: %v", err)
				}
			})
		}
		owners.Go(func() {
			time.Sleep(after)
			r.Delay()
			if cancelled {
				r.Cancel()
			}
		})
		owners.Wait()
		if !cancelled {
			started.Add(int64(n))
		}
	})
	require.LessOrEqual(t, started.Load(), int64(l.Stats().Units), "units that started, and what Stats says")
	require.Positive(t, started.Load())
}
