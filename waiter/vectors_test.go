package waiter_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func TestFiftyCallsAtOnceGetExactlyTheBurst(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(5), Burst: 10})
		var allowed, told atomic.Int64
		done := make(chan struct{})
		for range 50 {
			go func() {
				d, err := l.Try(context.Background(), 1)
				switch {
				case err == nil && d.Allowed:
					allowed.Add(1)
				case err == nil && d.RetryAfter > 0:
					told.Add(1)
				}
				done <- struct{}{}
			}()
		}
		for range 50 {
			<-done
		}
		require.EqualValues(t, 10, allowed.Load())
		require.EqualValues(t, 40, told.Load())
		require.Zero(t, since())
	})
}

func TestASlowRateNeverGivesMoreThanTheBurstHoweverLongTheCallsTake(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.Every(1000 * time.Second), Burst: 3})
	allowed := 0
	for range 100_000 {
		if try(t, l, 1).Allowed {
			allowed++
		}
	}
	require.Equal(t, 3, allowed)
}

func TestStartsFullAndThrowsAwayWhatIsOverTheBurst(t *testing.T) {
	for name, between := range map[string]bool{"asked only then": false, "asked in vain every ms": true} {
		t.Run(name, func(t *testing.T) {
			c := newClock()
			l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(2), Burst: 3, Now: c.now})
			at := time.Duration(0)
			for _, s := range []struct {
				at   time.Duration
				want string
			}{
				{0, "YYYN"}, {499 * ms, "N"}, {500 * ms, "YN"}, {10 * time.Second, "YYYN"},
			} {
				for ; at < s.at; at += ms {
					// A refused call counts the time that has passed, once.
					if between && at < 500*ms {
						require.False(t, try(t, l, 1).Allowed, "at %v", at)
					}
					c.advance(ms)
				}
				got := ""
				for range s.want {
					if try(t, l, 1).Allowed {
						got += "Y"
					} else {
						got += "N"
					}
				}
				require.Equal(t, s.want, got, "at %v", s.at)
			}
		})
	}
}

func TestTheAnswerSaysHowLongAndHowMuch(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(5), Burst: 10, Now: c.now})
	require.Equal(t, sluice.Decision{Allowed: true, ResetAfter: 2 * time.Second}, try(t, l, 10))
	require.Equal(t, sluice.Decision{RetryAfter: 200 * ms, ResetAfter: 2 * time.Second}, try(t, l, 1))
}

func TestAClockThatRunsBackMintsNothingAndWaitsIncludeTheGap(t *testing.T) {
	c := newClock()
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(1), Burst: 2, Now: c.now})
	c.advance(100 * time.Second)
	take(t, l, 2)
	c.advance(-10 * time.Second)
	d := try(t, l, 1)
	require.False(t, d.Allowed)
	require.Equal(t, 11*time.Second, d.RetryAfter)
	c.advance(11 * time.Second)
	require.True(t, try(t, l, 1).Allowed)
}

func TestMoreThanTheBurstIsAnErrorAtOnce(t *testing.T) {
	l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(5), Burst: 10})
	ctx := context.Background()
	_, err := l.Try(ctx, 11)
	r := refused(t, err, sluice.ErrTooLarge)
	require.Equal(t, 11, r.N)
	require.Equal(t, 10, r.Burst)
	require.Equal(t, sluice.Never, r.RetryAfter)
	refused(t, l.Wait(ctx, 11), sluice.ErrTooLarge)
	_, err = l.Reserve(ctx, 11)
	refused(t, err, sluice.ErrTooLarge)
	take(t, l, 10) // nothing was taken
}

func TestBadValuesAreNamed(t *testing.T) {
	ok := waiter.Config{Rate: sluice.PerSecond(5), Burst: 10}
	for text, change := range map[string]func(*waiter.Config){
		"Config.Rate is 0/s":       func(c *waiter.Config) { c.Rate = sluice.Rate{} },
		"Config.Rate is -5/s":      func(c *waiter.Config) { c.Rate = sluice.PerSecond(-5) },
		"Config.Rate is 5/0s":      func(c *waiter.Config) { c.Rate = sluice.Per(5, 0) },
		"Config.Burst is 0":        func(c *waiter.Config) { c.Burst = 0 },
		"Config.Burst is -1":       func(c *waiter.Config) { c.Burst = -1 },
		"Config.MaxWait is -1ns":   func(c *waiter.Config) { c.MaxWait = -1 },
		"Config.MaxWaiters is -1:": func(c *waiter.Config) { c.MaxWaiters = -1 },
	} {
		c := ok
		change(&c)
		l, err := waiter.New(c)
		require.Nil(t, l)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, "must be")
	}
	l := newLimiter(t, ok)
	ctx := context.Background()
	require.ErrorIs(t, l.SetRate(sluice.Rate{}), sluice.ErrInvalid)
	require.ErrorIs(t, l.SetBurst(0), sluice.ErrInvalid)
	require.ErrorIs(t, l.Wait(ctx, -1), sluice.ErrInvalid)
	require.ErrorIs(t, l.Wait(noContext, 1), sluice.ErrInvalid)
	require.NoError(t, l.Wait(ctx, 0))
	take(t, l, 10) // none of it took anything
	require.NoError(t, l.Wait(ctx, 0))
}

func TestALimiterThatNewDidNotMakeIsAnError(t *testing.T) {
	ctx := context.Background()
	for _, l := range []*waiter.Limiter{nil, {}} {
		require.ErrorIs(t, l.Wait(ctx, 1), sluice.ErrInvalid)
		_, err := l.Try(ctx, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		_, err = l.Reserve(ctx, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		_, _, err = l.TryReserve(ctx, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorIs(t, l.Pause(ctx, 1), sluice.ErrInvalid)
		require.ErrorIs(t, l.SetRate(sluice.Unlimited), sluice.ErrInvalid)
		require.ErrorIs(t, l.SetBurst(1), sluice.ErrInvalid)
		require.ErrorIs(t, l.Close(), sluice.ErrInvalid)
		require.Zero(t, l.Stats())
	}
}

func TestAWaitBeyondTheCallersTimeoutIsRefusedAtOnce(t *testing.T) {
	for _, c := range []struct{ timeout, back time.Duration }{
		{500 * ms, 0},
		{time.Second - 1, 0},
		{time.Second, time.Second}, // due exactly then is granted
		{time.Second + 1, time.Second},
	} {
		t.Run(c.timeout.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, since func() time.Duration) {
				l := drained(t, sluice.PerSecond(1), 1)
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				err := l.Wait(ctx, 1)
				require.Equal(t, c.back, since())
				if c.back > 0 {
					require.NoError(t, err)
					return
				}
				r := refused(t, err, sluice.ErrDeadline)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, time.Second, r.RetryAfter)
				require.Equal(t, time.Second, try(t, l, 1).RetryAfter) // took nothing
			})
		})
	}
}

func TestTwoWaitersNeverGetTheSameToken(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := drained(t, sluice.PerSecond(10), 1)
		var all []<-chan went
		for range 10 {
			all = append(all, call(t.Context(), l, 1, since))
		}
		for i, c := range all {
			require.Equal(t, went{time.Duration(i+1) * 100 * ms, nil}, <-c)
		}
	})
}

func TestStartEmptyStartsWithoutAToken(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		l := newLimiter(t, waiter.Config{Rate: sluice.PerSecond(10), Burst: 3, StartEmpty: true})
		require.Equal(t, sluice.Decision{RetryAfter: 100 * ms, ResetAfter: 300 * ms}, try(t, l, 1))
		require.Equal(t, went{100 * ms, nil}, <-call(t.Context(), l, 1, since))
		time.Sleep(time.Second)
		take(t, l, 3) // and then it is like any other
	})
	l := newLimiter(t, waiter.Config{Rate: sluice.Unlimited, Burst: 3, StartEmpty: true})
	take(t, l, 3) // unlimited is always full
}

func TestHeavierRequestsCostMore(t *testing.T) {
	bubble(t, func(t *testing.T, since func() time.Duration) {
		const burst = 7
		l := drained(t, sluice.PerSecond(10), burst)
		due := time.Duration(0)
		for n := 1; n <= burst; n++ {
			due += time.Duration(n) * 100 * ms
			require.Equal(t, went{due, nil}, <-call(t.Context(), l, n, since))
		}
	})
}
