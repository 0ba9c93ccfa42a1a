package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
	"github.com/fadf4e53/sluice/waiter"
)

const ms = time.Millisecond

func newWaiter(t testing.TB, rate sluice.Rate, burst int) *waiter.Limiter {
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst})
	require.NoError(t, err)
	return l
}

// served counts the requests that its handler gets.
type served struct {
	http.Handler
	n *atomic.Int64
}

// behind returns a handler that says 200 behind a limit, and counts.
func behind(t testing.TB, c httplimit.Config) served {
	limit, err := httplimit.New(c)
	require.NoError(t, err)
	n := new(atomic.Int64)
	return served{limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) })), n}
}

// get sends one request whose context is ctx.
func get(ctx context.Context, h http.Handler) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	return w.Result()
}

// broken is a limiter whose answers are errors.
type broken struct {
	sluice.Limiter
	err error
}

func (b broken) Wait(context.Context, int) error { return b.err }
func (b broken) TryReserve(context.Context, int) (sluice.Reservation, sluice.Decision, error) {
	return nil, sluice.Decision{}, b.err
}
func (b broken) Stats() sluice.Stats { return sluice.Stats{} }
