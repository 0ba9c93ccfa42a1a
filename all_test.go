package sluice_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/kinds"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

var background = context.Background()

// A day under 3/s, 100/min and 2000/day, taken as fast as they let: at each instant the strictest so far decides.
func TestAllOverADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []struct {
			rate  sluice.Rate
			burst int
		}{{sluice.PerSecond(3), 3}, {sluice.Per(100, time.Minute), 100}, {sluice.Per(2000, day), 2000}}
		var all []sluice.Limiter
		for _, l := range limits {
			all = append(all, kinds.Waiter(t, l.rate, l.burst))
		}
		joint := sluice.All(all...)
		start, units := time.Now(), 0
		for _, s := range []struct {
			at    time.Duration
			units int
		}{
			{0, 3},
			{time.Second, 6},
			{10 * time.Second, 33},
			{time.Minute, 183},     // 3/s still decides
			{2 * time.Minute, 300}, // 100/min decides
			{10 * time.Minute, 1100},
			{time.Hour, 2083}, // 2000/day decides
			{day, 4000},
		} {
			ctx, cancel := context.WithDeadline(background, start.Add(s.at))
			for s.at == 0 || ctx.Err() == nil {
				if s.at == 0 { // a ctx with this deadline is done already
					if d, err := joint.Try(background, 1); err != nil || !d.Allowed {
						break
					}
				} else if err := joint.Wait(ctx, 1); err != nil {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					break
				}
				units++
			}
			cancel()
			require.Equal(t, s.units, units, "within %v", s.at)
		}
		require.EqualValues(t, 4000, joint.Stats().Units)
		for _, l := range all {
			require.EqualValues(t, 4000, l.Stats().Units, "all or nothing: each has counted the same")
		}
	})
}

// What others do: the earlier limit is charged, again and again, for what the later one refuses.
func TestAllRefusalTakesNothingFromTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := kinds.Waiter(t, sluice.PerSecond(1), 10), kinds.Waiter(t, sluice.Every(1000*time.Second), 1)
		require.NoError(t, b.Wait(background, 1))
		for _, all := range []sluice.Limiter{sluice.All(a, b), sluice.All(b, a)} {
			for range 10 {
				d, err := all.Try(background, 1)
				require.NoError(t, err)
				require.Equal(t, sluice.Decision{RetryAfter: 1000 * time.Second, ResetAfter: 1000 * time.Second}, d)

				ctx, cancel := context.WithTimeout(background, time.Second)
				require.ErrorIs(t, all.Wait(ctx, 1), sluice.ErrDeadline)
				cancel()

				r, err := all.Reserve(background, 1)
				require.NoError(t, err)
				require.Equal(t, 1000*time.Second, r.Delay())
				r.Cancel()
			}
			require.Equal(t, 10, a.Stats().Available)
			require.Zero(t, a.Stats().Units)
		}
	})
}

func TestAllRefusedTryTellsTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := kinds.Waiter(t, sluice.PerSecond(1), 10), kinds.Waiter(t, sluice.PerSecond(1), 10)
		require.NoError(t, a.Wait(background, 6)) // 4 remain
		require.NoError(t, b.Wait(background, 8)) // 2 remain
		d, err := sluice.All(a, b).Try(background, 3)
		require.NoError(t, err)
		require.Equal(t, sluice.Decision{RetryAfter: time.Second, ResetAfter: 8 * time.Second, Remaining: 2}, d)
	})
}

func TestAllTellsTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fast, slow := kinds.Waiter(t, sluice.PerSecond(10), 1), kinds.Waiter(t, sluice.PerSecond(1), 1)
		all := sluice.All(fast, slow)
		require.NoError(t, all.Wait(background, 1))
		d, err := all.Try(background, 1)
		require.NoError(t, err)
		require.Equal(t, sluice.Decision{RetryAfter: time.Second, ResetAfter: time.Second}, d)
		time.Sleep(d.RetryAfter - 1)
		d, err = all.Try(background, 1)
		require.NoError(t, err)
		require.False(t, d.Allowed)
		time.Sleep(1 * time.Nanosecond)
		d, err = all.Try(background, 1)
		require.NoError(t, err)
		require.True(t, d.Allowed)
	})
}

func TestAllRefusalNamesTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, minute := kinds.Waiter(t, sluice.PerSecond(3), 3), kinds.Waiter(t, sluice.Per(100, time.Minute), 5)
		all := sluice.All(second, minute)
		var r *sluice.Refusal
		require.ErrorAs(t, all.Wait(background, 4), &r)
		require.Equal(t, sluice.Refusal{Reason: sluice.ErrTooLarge, N: 4, RetryAfter: sluice.Never, Rate: sluice.PerSecond(3), Burst: 3}, *r)

		require.NoError(t, minute.Wait(background, 5))
		ctx, cancel := context.WithTimeout(background, 500*time.Millisecond)
		defer cancel()
		require.ErrorAs(t, all.Wait(ctx, 1), &r)
		require.Equal(t, sluice.Refusal{
			Reason: sluice.ErrDeadline, N: 1, RetryAfter: 600 * time.Millisecond, Rate: sluice.Per(100, time.Minute), Burst: 5,
		}, *r)
	})
}

func TestAllGivesBackInFullWhenCtxEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := kinds.Waiter(t, sluice.PerSecond(1), 10), kinds.Waiter(t, sluice.Every(time.Hour), 7)
		require.NoError(t, b.Wait(background, 1))
		ctx, cancel := context.WithCancel(background)
		start := time.Now()
		time.AfterFunc(time.Microsecond, cancel)
		require.Equal(t, context.Canceled, sluice.All(a, b).Wait(ctx, 7))
		require.Equal(t, time.Microsecond, time.Since(start))
		require.Equal(t, 10, a.Stats().Available)
		require.Zero(t, b.Stats().Waiting)
	})
}

func TestAllOfNone(t *testing.T) {
	all := sluice.All()
	require.NoError(t, all.Wait(background, math.MaxInt))
	d, err := all.Try(background, 1)
	require.NoError(t, err)
	require.Equal(t, sluice.Decision{Allowed: true, Remaining: math.MaxInt}, d)
	r, err := all.Reserve(background, 5)
	require.NoError(t, err)
	require.Zero(t, r.Delay())
	r.Cancel()
	require.Equal(t, sluice.Never, r.Delay())
	require.ErrorIs(t, r.Wait(background), sluice.ErrInvalid)
	require.True(t, all.Stats().Rate.IsUnlimited())
	require.NoError(t, all.Pause(background, time.Hour))

	done, cancel := context.WithCancel(background)
	cancel()
	require.Equal(t, context.Canceled, all.Wait(done, 1))
	require.ErrorIs(t, all.Wait(background, -1), sluice.ErrInvalid)
}

func TestAllOfOneIsThatOne(t *testing.T) {
	l := kinds.Waiter(t, sluice.PerSecond(1), 1)
	require.True(t, sluice.All(l) == l)
}

func TestAllWithANilMember(t *testing.T) {
	l := kinds.Waiter(t, sluice.PerSecond(1), 1)
	for _, all := range []sluice.Limiter{sluice.All(nil), sluice.All(l, nil), sluice.All(nil, l), sluice.All(l, (*waiter.Limiter)(nil))} {
		require.ErrorIs(t, all.Wait(background, 1), sluice.ErrInvalid)
		_, err := all.Try(background, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		_, err = all.Reserve(background, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.Equal(t, 1, l.Stats().Available)
		require.NotPanics(t, func() { all.Stats() })
		require.ErrorIs(t, all.Pause(background, 1), sluice.ErrInvalid)
	}
}

func TestAllKeepsItsOwnListOfLimits(t *testing.T) {
	l := kinds.Waiter(t, sluice.PerSecond(1), 1)
	limits := []sluice.Limiter{l, l}
	all := sluice.All(limits...)
	limits[0] = nil
	require.NotErrorIs(t, all.Wait(background, 0), sluice.ErrInvalid)
}

func TestAllChargesALimitGivenTwiceTwice(t *testing.T) {
	l := kinds.Waiter(t, sluice.Every(time.Hour), 10)
	require.NoError(t, sluice.All(l, l).Wait(background, 3))
	require.EqualValues(t, 6, l.Stats().Units)
}

// A Limiter of somebody else, which has no TryReserve, is asked by Reserve and Cancel: the answers are the same.
func TestAllWithAForeignLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		foreign, own := kinds.Foreign(t, sluice.PerSecond(1), 2), kinds.Waiter(t, sluice.PerSecond(10), 5)
		all := sluice.All(foreign, own)
		d, err := all.Try(background, 2)
		require.NoError(t, err)
		require.Equal(t, sluice.Decision{Allowed: true, ResetAfter: 2 * time.Second}, d)
		d, err = all.Try(background, 1)
		require.NoError(t, err)
		require.Equal(t, sluice.Decision{RetryAfter: time.Second, ResetAfter: 2 * time.Second}, d)
		require.Equal(t, 3, own.Stats().Available, "a refusal took nothing")
		require.Zero(t, foreign.Stats().Waiting, "nor is anything queued")
	})
}

func TestAllWithAForeignLimiterThatIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, MaxWait: time.Millisecond})
		require.NoError(t, err)
		require.NoError(t, full.Wait(background, 1))
		d, err := sluice.All(struct{ sluice.Limiter }{full}, kinds.Waiter(t, sluice.PerSecond(9), 9)).Try(background, 1)
		require.NoError(t, err, "a Try that is refused for now has no error")
		require.Equal(t, sluice.Decision{RetryAfter: time.Second, ResetAfter: time.Second}, d)
	})
}

func TestAllEndsWhenOneIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := kinds.Waiter(t, sluice.PerSecond(10), 5)
		closed, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1), Burst: 1})
		require.NoError(t, err)
		require.NoError(t, closed.Wait(background, 1))
		all := sluice.All(open, closed)
		ended := make(chan error)
		go func() { ended <- all.Wait(background, 1) }()
		synctest.Wait()
		require.NoError(t, closed.Close())
		require.ErrorIs(t, <-ended, sluice.ErrClosed)
		require.Equal(t, 5, open.Stats().Available)
		require.EqualValues(t, 1, all.Stats().Refused, "who is turned away has not left by himself")
		require.Zero(t, all.Stats().Canceled)

		_, err = all.Try(background, 1)
		require.ErrorIs(t, err, sluice.ErrClosed)
		require.Equal(t, 5, open.Stats().Available)
	})
}

func TestAllStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := kinds.Waiter(t, sluice.PerSecond(3), 30), kinds.Waiter(t, sluice.Per(100, time.Minute), 100)
		p, err := leaky.New(leaky.Config{Rate: sluice.PerSecond(50), Capacity: 40})
		require.NoError(t, err)
		all := sluice.All(a, b, p)
		require.NoError(t, b.Wait(background, 95))
		require.NoError(t, all.Wait(background, 2))
		require.Equal(t, sluice.Stats{
			Rate: sluice.Per(100, time.Minute), Burst: 30, Available: 3, Granted: 1, Units: 2,
		}, all.Stats(), "the slowest rate, the smallest burst, the least available")
	})
}

func TestAllRefusalIsTrueOfTheLimitsBehindItToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1), Burst: 1, MaxWait: time.Millisecond})
		require.NoError(t, err)
		long, err := waiter.New(waiter.Config{Rate: sluice.Every(5 * time.Second), Burst: 1, MaxWait: time.Millisecond})
		require.NoError(t, err)
		patient := kinds.Waiter(t, sluice.Every(9*time.Second), 1)
		for _, l := range []sluice.Limiter{short, long, patient} {
			require.NoError(t, l.Wait(background, 1))
		}
		var no *sluice.Refusal
		require.ErrorAs(t, sluice.All(short, long).Wait(background, 1), &no)
		require.Equal(t, sluice.Refusal{
			Reason: sluice.ErrMaxWait, N: 1, RetryAfter: 5 * time.Second, Rate: sluice.Every(5 * time.Second), Burst: 1,
		}, *no)
		require.ErrorAs(t, sluice.All(short, patient).Wait(background, 1), &no)
		require.Equal(t, 9*time.Second, no.RetryAfter)
		require.ErrorAs(t, sluice.All(short, kinds.Waiter(t, sluice.PerSecond(1), 1)).Wait(background, 2), &no)
		require.ErrorIs(t, no, sluice.ErrTooLarge)
		require.Zero(t, patient.Stats().Waiting)
	})
}

func TestAllCountsACancelAfterTheTurnAsAGrantGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := kinds.Waiter(t, sluice.PerSecond(1), 1), kinds.Waiter(t, sluice.PerSecond(2), 1)
		all := sluice.All(a, b)
		require.NoError(t, all.Wait(background, 1))
		r, err := all.Reserve(background, 1)
		require.NoError(t, err)
		time.Sleep(time.Second)
		r.Cancel() // nobody has asked it before
		r.Cancel()
		s := all.Stats()
		require.Equal(t, sluice.Stats{Granted: 2, Units: 1, Waited: time.Second},
			sluice.Stats{Granted: s.Granted, Canceled: s.Canceled, Units: s.Units, Waited: s.Waited})
	})
}

func TestAllGrantsWhatIsDueExactlyAtTheDeadline(t *testing.T) {
	// On the real clock time passes between two looks at it: the deadline is looked at first.
	for range 200 {
		a, b := kinds.Waiter(t, sluice.Every(2*time.Millisecond), 1), kinds.Waiter(t, sluice.Every(2*time.Millisecond), 1)
		all := sluice.All(a, b)
		require.NoError(t, all.Wait(background, 1))
		r, err := all.Reserve(background, 1)
		require.NoError(t, err)
		left := r.Delay()
		ctx, cancel := context.WithTimeout(background, left)
		require.NotErrorIs(t, r.Wait(ctx), sluice.ErrDeadline)
		cancel()
	}
}

func TestAllPausesEachAlsoWhenOneIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(3), Burst: 3})
		require.NoError(t, err)
		b := kinds.Waiter(t, sluice.PerSecond(5), 5)
		require.NoError(t, a.Close())
		require.ErrorIs(t, sluice.All(a, b).Pause(background, time.Minute), sluice.ErrClosed)
		d, err := b.Try(background, 1)
		require.NoError(t, err)
		require.Equal(t, time.Minute, d.RetryAfter)
	})
}

func TestAllPausesEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := kinds.Waiter(t, sluice.PerSecond(3), 3), kinds.Waiter(t, sluice.PerSecond(5), 5)
		require.NoError(t, sluice.All(a, b).Pause(background, time.Minute))
		for _, l := range []sluice.Limiter{a, b} {
			d, err := l.Try(background, 1)
			require.NoError(t, err)
			require.Equal(t, time.Minute, d.RetryAfter)
		}
	})
}

// broken is a Limiter that fails in its own way, as one does whose store cannot be asked.
type broken struct{ sluice.Limiter }

var errBroken = errors.New("cannot ask")

func (broken) Reserve(context.Context, int) (sluice.Reservation, error) { return nil, errBroken }

func TestAllPassesOnAFailureAndTakesNothing(t *testing.T) {
	l := kinds.Waiter(t, sluice.Every(time.Hour), 5)
	all := sluice.All(l, broken{kinds.Waiter(t, sluice.PerSecond(1), 1)})
	require.ErrorIs(t, all.Wait(background, 1), errBroken)
	_, err := all.Try(background, 1)
	require.ErrorIs(t, err, errBroken)
	require.Equal(t, 5, l.Stats().Available)
	require.Zero(t, all.Stats().Refused, "not to be able to ask is no refusal")
}
