package queue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/queue"
)

// alarms counts what Asynq itself has to complain about.
type alarms struct {
	silent
	n atomic.Int64
}

func (a *alarms) Warn(...any)  { a.n.Add(1) }
func (a *alarms) Error(...any) { a.n.Add(1) }

// A hundred mails at ten a second with three tries: those that were refused three times were lost, unsent. So were 98 of a
// hundred with two in a window, and what was left came with the backoff of a failure, each with an error in the log. Here
// each kind has its own limit and tries, on one worker: all run, once, as fast as their limit lets them. Times are shorter than they were.
func TestMailsWereLostForWaitingThreeTimes(t *testing.T) {
	t.Parallel()
	kinds := map[string]struct {
		rate    string
		burst   int
		n       int
		retries int
		ideal   time.Duration
	}{
		"t:mails":   {"50/s", 1, 100, 3, 1980 * ms},      // 10/s, 10 s
		"t:posts":   {"100/s", 30, 200, 2, 1700 * ms},    // 30 in 60 s, tries 3
		"t:backoff": {"10/s", 1, 20, 25, 1900 * ms},      // 2/s, backoff of 5 minutes
		"t:window":  {"50/s", 2, 100, 25, 1960 * ms},     // 2 in 600 s
		"t:reports": {"60/s", 1, 120, 25, 1983 * ms},     // 1/s, 180 of them
		"t:slow":    {"3/s", 1, 6, 25, 1667 * ms},        // 1/min, 6 of them
		"t:batch":   {"12/2s", 1, 12, 25, 1833 * ms},     // 12/min
		"t:probe":   {"1/400ms", 1, 5, 1, 1600 * ms},     // 1 in 20 s, 5 of them
		"t:pair":    {"2/750ms", 2, 6, 25, 4 * 375 * ms}, // 2 in 3 s
		"t:one":     {"1/s", 1, 2, 0, 1000 * ms},         // tries 1, 1 in 10 s
	}
	w := newWorker(t)
	limits, all := map[string]sluice.Limiter{}, 0
	for kind, k := range kinds {
		limits[kind] = limit(t, k.rate, k.burst)
		all += k.n
		w.enqueue(kind, k.n, asynq.MaxRetry(k.retries))
	}
	var mu sync.Mutex
	deferred, told := map[string]int{}, &alarms{}
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits), OnDefer: func(_ context.Context, d queue.Deferral) {
		mu.Lock()
		defer mu.Unlock()
		deferred[d.TaskID] = d.Count
	}})
	w.run(g, asynq.Config{
		Concurrency: 40, Logger: told,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 3 * time.Hour },
		ErrorHandler:   asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) { t.Error(err) }),
	}, nil)
	w.await("", all, 20*time.Second)
	w.finished("default", all)
	w.once()
	require.Zero(t, told.n.Load(), "errors in Asynq's log")
	for kind, k := range kinds {
		took := w.last(kind).Sub(w.begun)
		t.Logf("%s: %d at %s in %v (ideal %v)", kind, k.n, k.rate, took, k.ideal)
		require.Equal(t, k.n, w.count(kind))
		require.Less(t, took, 2*k.ideal+500*ms, kind)
	}
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, deferred)
	for id, n := range deferred {
		require.LessOrEqual(t, n, 3, "returns of task %s", id)
	}
}

// What a job had written before the limit was asked was written once more for each return.
func TestWhatWasWrittenBeforeTheLimitWasWrittenTwice(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 20, asynq.MaxRetry(3))
	w.enqueue("t:a", 5, asynq.MaxRetry(0))
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "25/s", 1)})})
	var before, after atomic.Int64
	count := func(n *atomic.Int64) asynq.MiddlewareFunc {
		return func(next asynq.Handler) asynq.Handler {
			return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
				n.Add(1)
				return next.ProcessTask(ctx, task)
			})
		}
	}
	w.run(g, asynq.Config{Concurrency: 4}, func(ctx context.Context, task *asynq.Task) error {
		return count(&after)(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return nil })).ProcessTask(ctx, task)
	}, count(&before))
	w.await("t:a", 25, 10*time.Second)
	w.finished("default", 25)
	require.EqualValues(t, 25, after.Load(), "behind the Gate: once for each job")
	require.NotZero(t, g.Stats().Deferred)
	require.EqualValues(t, 25+g.Stats().Deferred, before.Load(), "before it: for each delivery")
}

// fleet is one limit for all who ask for it by this name.
func (w *worker) fleet(rate sluice.Rate) *cluster.Limiter {
	w.t.Helper()
	lim, err := cluster.New(w.rdb, cluster.Config{Name: "fleet", Rate: rate, Burst: 1})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = lim.Close() })
	return lim
}

// Sixty a minute were sixty for each worker, and a full burst more after each restart.
func TestEachWorkerHadTheWholeLimitAndAgainAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 60)
	for range 3 {
		w.run(gate(t, queue.Config{Limiter: w.fleet(sluice.PerSecond(20))}), asynq.Config{Concurrency: 4}, nil)
	}
	for restart := range 4 {
		lim := w.fleet(sluice.PerSecond(20))
		g := gate(t, queue.Config{Limiter: lim})
		w.run(g, asynq.Config{Concurrency: 4}, nil)
		w.await("t:a", 10*(restart+1), 10*time.Second)
		w.srv.Stop()
		g.Drain()
		w.srv.Shutdown()
		require.NoError(t, lim.Close())
	}
	w.await("t:a", 60, 10*time.Second)
	w.held("t:a", 20, 1)
	w.finished("default", 60)
	w.once()
}

// A queue that was closed for thirty seconds stayed closed when the worker that had closed it died.
func TestAPauseOutlivedTheWorkerThatAskedForIt(t *testing.T) {
	t.Parallel()
	const rest = 1500 * ms
	w := newWorker(t)
	w.enqueue("t:a", 20)
	asked := make(chan time.Time, 100)
	first := gate(t, queue.Config{Limiter: w.fleet(sluice.PerSecond(50))})
	w.run(first, asynq.Config{Concurrency: 1}, func(context.Context, *asynq.Task) error {
		asked <- time.Now()
		return queue.Backoff(rest)
	})
	at := <-asked
	w.until("it has been handed back", func() bool { return first.Stats().Deferred == 1 })
	w.srv.Stop()
	first.Drain()
	w.srv.Shutdown()

	other := redis.NewClient(&redis.Options{Addr: w.redis.Addr})
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	lim, err := cluster.New(other, cluster.Config{Name: "fleet", Rate: sluice.PerSecond(50), Burst: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = lim.Close() })
	w.run(gate(t, queue.Config{Limiter: lim}), asynq.Config{Concurrency: 4}, nil)
	w.await("t:a", 21, 10*time.Second)
	require.Zero(t, w.between("t:a", at, rest), "starts before the time is over")
	w.finished("default", 20)
	require.False(t, w.info("default").Paused)
}
