package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// Work that was free to go stood behind work that was not: b took 7 to 10 s where one kind held all slots, a minute where one
// key did, and as long as a thousand others where the limit of one class was the queue's. It is judged by what has started
// before it.
func TestFreeWorkStoodBehindLimitedWork(t *testing.T) {
	for _, c := range []struct {
		what    string
		rate    string
		burst   int
		limited int
		free    int
		slots   int
		servers int
		keyed   bool   // the free work has a limit as well, its own
		queue   string // of the free work
		late    bool   // it comes when the limited work is all known
		before  int    // starts of limited work before the last of the free
	}{
		{what: "2/s, in another queue", rate: "2/s", burst: 1, limited: 60, free: 20, slots: 10, servers: 1, queue: "critical", late: true, before: 4},
		{what: "10/h beside a hundred free ones", rate: "10/h", burst: 10, limited: 300, free: 100, slots: 10, servers: 1, before: 10},
		{what: "a key of 1 in 10 s before another key", rate: "1/10s", burst: 1, limited: 100, free: 1, slots: 25, servers: 1, keyed: true, before: 1},
		{what: "eight of a class, and a thousand of them waiting", rate: "8/h", burst: 8, limited: 1000, free: 1, slots: 10, servers: 2, before: 8},
		{what: "10 in a minute, and then B", rate: "10/min", burst: 1, limited: 100, free: 1, slots: 4, servers: 1, before: 2},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			if c.queue == "" {
				c.queue = "default"
			}
			w := newWorker(t)
			limits := map[string]sluice.Limiter{"t:limited": limit(t, c.rate, c.burst)}
			if c.keyed {
				limits["t:free"] = limit(t, c.rate, c.burst)
			}
			g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits)})
			free := func() { w.enqueue("t:free", c.free, asynq.Queue(c.queue)) }
			w.enqueue("t:limited", c.limited)
			if !c.late {
				free()
			}
			var looked atomic.Int64
			for range c.servers {
				w.run(g, asynq.Config{Concurrency: c.slots, Queues: map[string]int{"default": 1, "critical": 1}}, nil,
					func(next asynq.Handler) asynq.Handler {
						return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
							if task.Type() == "t:limited" {
								looked.Add(1)
							}
							return next.ProcessTask(ctx, task)
						})
					})
			}
			if c.late {
				w.until("all slots are in use or their tasks handed back", func() bool { return looked.Load() >= int64(c.slots) })
				free()
			}
			w.await("t:free", c.free, 10*time.Second)
			before := w.startsBefore("t:limited", w.last("t:free"))
			t.Logf("%d starts of limited work before the last of %d free tasks; %d looks at %d limited ones", before, c.free, looked.Load(), c.limited)
			require.LessOrEqual(t, before, c.before)
			require.LessOrEqual(t, looked.Load(), int64(c.limited+2*c.slots), "they sleep, and do not circle through the queue")
			w.unharmed("default")
		})
	}
}

// startsBefore counts the starts of a kind before an instant.
func (w *worker) startsBefore(kind string, at time.Time) (n int) {
	for _, s := range w.all() {
		if s.kind == kind && s.at.Before(at) {
			n++
		}
	}
	return n
}

// When only limited jobs were left they were popped and pushed back thousands of times a second, and the CPU was at 99 %.
func TestLimitedJobsCircledThroughTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 300)
	lim := limit(t, "1/min", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": lim})})
	var looked atomic.Int64
	w.run(g, asynq.Config{Concurrency: 10}, nil, func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			looked.Add(1)
			return next.ProcessTask(ctx, task)
		})
	})
	w.until("all are handed back", func() bool { return w.info("default").Retry == 300 })
	before, at := w.commands(), time.Now()
	time.Sleep(1500 * ms) // nothing is to happen in it
	perSecond := float64(w.commands()-before) / time.Since(at).Seconds()
	t.Logf("%.0f commands a second", perSecond)
	require.EqualValues(t, 300, looked.Load(), "each was looked at once, and not again")
	require.Less(t, perSecond, 200., "an idle worker's 60, the forwarder's, and what keeps them in their place")
	require.Empty(t, w.all())
}

// A limit on jobs of one slot each, a thousand of them: handing all back churned Redis, and waiting blocked the slots. A job
// is handed back about once, and what that costs is known.
func TestWaitingChurnedRedisOrBlockedTheSlots(t *testing.T) {
	t.Parallel()
	const n = 1000
	w := newWorker(t)
	w.enqueue("t:a", n)
	limits := map[string]sluice.Limiter{"t:a": limit(t, "500/s", 5)}
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits)})
	before := w.commands()
	w.run(g, asynq.Config{Concurrency: 10}, nil)
	w.await("t:a", n/2, 20*time.Second)
	w.enqueue("t:free", 1)
	w.await("t:free", 1, 10*time.Second)
	require.Less(t, w.startsBefore("t:a", w.last("t:free")), n, "a slot is free for other work")
	w.await("t:a", n, 20*time.Second)
	perTask := float64(w.commands()-before) / n
	t.Logf("%.2f deferrals and %.1f commands for each task", float64(g.Stats().Deferred)/n, perTask)
	require.LessOrEqual(t, g.Stats().Deferred, uint64(n*11/10))
	require.Less(t, perTask, 45.)
	w.held("t:a", 500, 5)
	w.finished("default", n+1)
	w.once()
}

// Ten groups of one job each in ten seconds, on ten slots, ran one job in ten seconds. The queue has them one group after the
// other, so that the first group's jobs take all the slots.
func TestTheFirstGroupTookAllTheSlots(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	for group := range 10 {
		w.enqueue(fmt.Sprintf("t:%d", group), 10)
	}
	g := gate(t, queue.Config{Redis: w.redis, Route: byKey(t, "1/10s", 1)})
	w.run(g, asynq.Config{Concurrency: 10}, nil)
	w.await("", 10, 8*time.Second)
	for group := range 10 {
		require.Equal(t, 1, w.count(fmt.Sprintf("t:%d", group)))
	}
	w.until("the rest is handed back", func() bool { return w.info("default").Retry == 90 })
	require.Len(t, w.all(), 10)
}
