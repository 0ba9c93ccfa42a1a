package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

func byType(limits map[string]sluice.Limiter) func(context.Context, *asynq.Task) sluice.Limiter {
	return func(_ context.Context, task *asynq.Task) sluice.Limiter {
		if l := limits[task.Type()]; l != nil {
			return l
		}
		return nil
	}
}

// A limit on one kind must not limit the queue, and each kind must reach its own rate at about one deferral a task.
func TestKeysReachTheirRatesBesideUnlimitedJobs(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	limits := map[string]sluice.Limiter{}
	var kinds []string
	for k := range 8 {
		kind := fmt.Sprintf("t:%d", k)
		limits[kind] = limit(t, "10/s", 1)
		for range 30 {
			kinds = append(kinds, kind)
		}
	}
	for range 200 {
		kinds = append(kinds, "t:free")
	}
	rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds {
		w.enqueue(kind, 1)
	}
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits)})
	w.run(g, asynq.Config{Concurrency: 20}, nil)
	free := w.await("t:free", 200, 10*time.Second)
	took := w.await("", 440, 10*time.Second)
	t.Logf("unlimited done after %v, all after %v (ideal 2.9s), %d deferrals", free, took, g.Stats().Deferred)
	w.within(800*ms, free)
	w.within(3100*ms, took)
	require.LessOrEqual(t, g.Stats().Deferred, uint64(252))
	for kind := range limits {
		w.held(kind, 10, 1)
	}
	w.finished("default", 440)
	w.once()
}

// Rates far above what the slots could carry if each called task held one for as long as an idle worker sleeps.
func TestDeferredWorkReachesHighRates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rate, slots, n int }{{500, 10, 1000}, {50, 2, 100}} {
		w := newWorker(t)
		w.enqueue("t:a", c.n)
		lim := limit(t, fmt.Sprintf("%d/s", c.rate), 1)
		g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": lim})})
		w.run(g, asynq.Config{Concurrency: c.slots}, nil)
		took := w.await("t:a", c.n, 10*time.Second)
		t.Logf("%d at %d/s with %d slots in %v, %d deferrals", c.n, c.rate, c.slots, took, g.Stats().Deferred)
		w.within(2200*ms, took) // ideal 2 s; slots that sleep with their task carry a third of the rate
		w.finished("default", c.n)
		w.once()
	}
}

// Each place is held for a task of its own size, and none is left over.
func TestDeferredTasksOfDifferentCostReachTheRate(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 30)
	lim := limit(t, "20/s", 3)
	route := func(context.Context, *asynq.Task) sluice.Limiter { return lim }
	cost := func(_ context.Context, task *asynq.Task) int { return len(task.Payload())*2 - 1 } // 10 of 1, 20 of 3
	w.run(gate(t, queue.Config{Redis: w.redis, Route: route, Cost: cost}), asynq.Config{Concurrency: 8}, nil)
	w.until("all have started", func() bool { return len(w.all()) == 30 })
	last := w.all()[29].at.Sub(w.begun)
	w.within(3350*ms*115/100, last) // 70 units at 20/s with a burst of 3: 3.35 s
	require.EqualValues(t, 70, lim.Stats().Units)
	w.until("no place is left over", func() bool { return lim.Stats().Waiting == 0 })
}

// Somebody runs all retries by hand: the limit holds, nothing is lost, and nobody runs twice.
func TestRunAllRetriesDoesNotBreakTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 60)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "20/s", 1)})})
	w.run(g, asynq.Config{Concurrency: 10}, nil)
	w.await("t:a", 10, 5*time.Second)
	_, err := w.insp.RunAllRetryTasks("default")
	require.NoError(t, err)
	took := w.await("t:a", 60, 10*time.Second)
	w.within(3300*ms, took) // ideal 2.95 s
	w.held("", 20, 1)
	w.finished("default", 60)
	w.once()
}

// What was archived while it waited stays archived: Inspector.RunTask would bring it back.
func TestArchivedWhileDeferredStaysArchived(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 20)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "10/s", 1)})})
	w.run(g, asynq.Config{Concurrency: 8}, nil)
	w.await("t:a", 5, 5*time.Second)
	n, err := w.insp.ArchiveAllRetryTasks("default")
	require.NoError(t, err)
	require.NotZero(t, n)
	w.until("the rest has run", func() bool { i := w.info("default"); return i.Size == i.Archived })
	require.Equal(t, n, w.info("default").Archived)
	require.Len(t, w.all(), 20-n)
	w.until("nothing is held for them", func() bool { return g.Stats().Waiting == 0 })
}

// Two servers in one process share a Gate and its limit; each keeps slots free for other work.
func TestTwoServersShareAGate(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 60)
	w.enqueue("t:free", 20, asynq.Queue("b"))
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "20/s", 1)})})
	w.run(g, asynq.Config{Concurrency: 5}, nil)
	w.run(g, asynq.Config{Concurrency: 5, Queues: map[string]int{"default": 1, "b": 1}}, nil)
	w.await("t:free", 20, 5*time.Second)
	took := w.await("t:a", 60, 10*time.Second)
	w.within(3300*ms, took)
	w.held("t:a", 20, 1)
	w.finished("default", 60)
	w.once()
}

// A turn that was kept for a deferred task must not be used after it is past: 264 of 1,000 tasks once started in one second
// that way. Here other work holds all slots until the turns of all who were called are past.
func TestLateReturnsPassTheLimiterAgain(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 60)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "20/s", 1)})})
	var blocked sync.WaitGroup
	blocked.Add(8)
	cfg := asynq.Config{Concurrency: 8, StrictPriority: true, Queues: map[string]int{"default": 1, "first": 2}}
	w.run(g, cfg, func(_ context.Context, task *asynq.Task) error {
		if task.Type() == "t:block" {
			blocked.Done()
			blocked.Wait()       // all eight slots
			time.Sleep(600 * ms) // 12 turns
		}
		return nil
	})
	w.await("t:a", 10, 10*time.Second)
	w.enqueue("t:block", 8, asynq.Queue("first"))
	w.await("t:a", 60, 20*time.Second)
	w.held("t:a", 20, 1)
	w.mu.Lock()
	stall := w.stall
	w.mu.Unlock()
	require.LessOrEqual(t, w.peak("t:a", 100*ms), 1+int(20*(100*ms+stall)/time.Second))
	w.finished("default", 60)
	w.once()
}
