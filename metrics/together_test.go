package metrics_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/queue"
)

// A Gate whose Route observes anew for each task still knows that it is one limit.
func TestAGateIsPacedByWhatIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, lim := metrics.New(), perSecond(t, 10, 1)
		gate, err := queue.NewGate(queue.Config{Logger: slog.New(slog.DiscardHandler), Route: func(context.Context, *asynq.Task) sluice.Limiter {
			return c.Limiter("mail", lim)
		}})
		require.NoError(t, err)
		c.Gate("mail", func() metrics.GateStats { return metrics.GateStats(gate.Stats()) })
		worker := gate.Middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil }))
		began := time.Now()
		for range 4 {
			require.NoError(t, worker.ProcessTask(t.Context(), asynq.NewTask("mail", nil)))
		}
		require.Equal(t, 300*ms, time.Since(began))
		s := scrape(t, c)
		require.Equal(t, 4.0, s["granted_total mail"])
		require.InDelta(t, 0.3, s["wait_seconds_sum mail"], 1e-9)
		require.Equal(t, 4.0, s["gate_started_total mail"])
		require.InDelta(t, 0.3, s["gate_wait_seconds_total mail"], 1e-9)
	})
}

func TestRequestsAreLimitedByWhatIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, o := newObserved(perSecond(t, 1, 1))
		for _, hold := range []time.Duration{0, 500 * ms, time.Second} {
			limit, err := httplimit.New(httplimit.Config{Limiter: o, MaxWait: hold})
			require.NoError(t, err)
			h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			for range 2 {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
			}
		}
		require.Equal(t, map[string]float64{
			"granted_total api": 3, "units_total api": 3, "wait_seconds_count api": 3, "wait_seconds_sum api": 2,
			"refused_total api not_now": 1, "refused_total api deadline": 2,
		}, scrape(t, c))
	})
}
