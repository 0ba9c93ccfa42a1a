package queue_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// All that can happen to a worker happens at once: kinds of all sorts, tasks without retries, handlers that put themselves off,
// somebody who runs all retries by hand, queues that are paused, and servers that come and go. Nothing is lost, nothing fails,
// no task that did not ask for it starts twice, and every limit holds.
func TestEverythingAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.watchStalls()
	limits := map[string]sluice.Limiter{
		"t:even":  limit(t, "40/s", 1),
		"t:burst": limit(t, "60/s", 10),
		"t:large": limit(t, "90/s", 3), // three units a task
	}
	kinds := []string{"t:even", "t:burst", "t:large", "t:free"}
	const each = 150
	r := rand.New(rand.NewPCG(1, 2))
	for range each {
		for _, kind := range kinds {
			opts := []asynq.Option{asynq.Queue([]string{"default", "other"}[r.IntN(2)])}
			if r.IntN(5) == 0 {
				opts = append(opts, asynq.MaxRetry(0))
			}
			w.enqueue(kind, 1, opts...)
		}
	}

	var mu sync.Mutex
	again := map[string]bool{} // put themselves off once
	handler := func(ctx context.Context, task *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		w.seen(ctx, task)
		mu.Lock()
		defer mu.Unlock()
		if task.Type() == "t:burst" && !again[id] && len(again) < 10 {
			again[id] = true
			return queue.Defer(100 * ms)
		}
		return nil
	}
	g := gate(t, queue.Config{
		Redis: w.redis, Route: byType(limits),
		Cost: func(_ context.Context, task *asynq.Task) int {
			if task.Type() == "t:large" {
				return 3
			}
			return 1
		},
	})
	serve := func() *asynq.Server {
		srv := asynq.NewServer(w.redis, g.Configure(asynq.Config{
			Concurrency: 12, Logger: silent{}, Queues: map[string]int{"default": 2, "other": 1},
		}))
		require.NoError(t, srv.Start(g.Middleware(asynq.HandlerFunc(handler))))
		return srv
	}
	w.begun = time.Now()
	first, second := serve(), serve()
	for i := range 6 {
		w.await("", each*(i+1)/2, 30*time.Second)
		switch i {
		case 0, 3:
			for _, q := range []string{"default", "other"} {
				_, err := w.insp.RunAllRetryTasks(q)
				require.NoError(t, err)
			}
		case 1:
			require.NoError(t, w.insp.PauseQueue("other"))
		case 2:
			require.NoError(t, w.insp.UnpauseQueue("other"))
			first.Stop()
			first.Shutdown()
		case 4: // as at a restart
			second.Stop()
			g.Drain()
			second.Shutdown()
			second = serve()
		}
	}
	defer second.Shutdown()
	defer g.Drain()
	w.await("", len(kinds)*each+10, 30*time.Second)
	w.until("all done and nothing left", func() bool {
		done := 0
		for _, q := range []string{"default", "other"} {
			i := w.info(q)
			done += i.ProcessedTotal
			if i.Size > 0 {
				return false
			}
		}
		return done == len(kinds)*each
	})
	w.unharmed("default")
	w.unharmed("other")
	times := map[string]int{}
	for _, s := range w.all() {
		times[s.id]++
	}
	require.Len(t, times, len(kinds)*each)
	for id, n := range times {
		if !again[id] {
			require.Equal(t, 1, n, "starts of task %s", id)
		}
	}
	w.held("t:even", 40, 1)
	w.held("t:burst", 60, 10)
	w.held("t:large", 30, 1)
}
