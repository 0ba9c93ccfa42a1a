package waiter_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// noContext is the nil that a caller can pass by mistake.
var noContext context.Context

// clock is a hand-driven Config.Now.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newLimiter(t testing.TB, c waiter.Config) *waiter.Limiter {
	t.Helper()
	l, err := waiter.New(c)
	require.NoError(t, err)
	return l
}

// drained returns a limiter whose whole burst has been taken just now.
func drained(t testing.TB, rate sluice.Rate, burst int) *waiter.Limiter {
	t.Helper()
	l := newLimiter(t, waiter.Config{Rate: rate, Burst: burst})
	take(t, l, burst)
	return l
}

func take(t testing.TB, l *waiter.Limiter, n int) {
	t.Helper()
	require.True(t, try(t, l, n).Allowed, "Try(%d)", n)
}

func try(t testing.TB, l *waiter.Limiter, n int) sluice.Decision {
	t.Helper()
	d, err := l.Try(context.Background(), n)
	require.NoError(t, err)
	return d
}

// refused returns err's Refusal.
func refused(t testing.TB, err, reason error) *sluice.Refusal {
	t.Helper()
	require.ErrorIs(t, err, reason)
	var r *sluice.Refusal
	require.True(t, errors.As(err, &r))
	return r
}

// went is when a caller came back, since the start of the bubble, and with what.
type went struct {
	at  time.Duration
	err error
}

// bubble runs f on a virtual clock that starts at 0. f starts callers with call, and gets what became of each from
// the channel that call returns.
func bubble(t *testing.T, f func(t *testing.T, since func() time.Duration)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f(t, func() time.Duration { return time.Since(start) })
	})
}

// call Waits in a goroutine, and returns once it stands in line or has come back.
func call(ctx context.Context, w sluice.Waiter, n int, since func() time.Duration) <-chan went {
	done := make(chan went, 1)
	go func() {
		err := w.Wait(ctx, n)
		done <- went{since(), err}
	}()
	synctest.Wait()
	return done
}
