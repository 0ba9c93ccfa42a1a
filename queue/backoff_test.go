package queue_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/queue"
)

// backsOff runs the worker until n tasks have started, of which the first of a kind asks for d of rest, and returns when.
func (w *worker) backsOff(kind string, d time.Duration, g *queue.Gate, slots, n int) (asked time.Time) {
	w.t.Helper()
	var once sync.Once
	w.run(g, asynq.Config{Concurrency: slots}, func(_ context.Context, task *asynq.Task) (err error) {
		if task.Type() == kind {
			once.Do(func() { asked, err = time.Now(), queue.Backoff(d) })
		}
		return err
	})
	w.await("", n+1, 30*time.Second) // one starts twice
	w.finished("default", n)
	return asked
}

// between counts the starts of a kind after an instant and until d later; what had its turn before may still come.
func (w *worker) between(kind string, after time.Time, d time.Duration) (n int) {
	for _, s := range w.all() {
		if s.kind == kind && s.at.After(after.Add(ms)) && s.at.Before(after.Add(d)) {
			n++
		}
	}
	return n
}

// Each delivery makes a new view of its key; equal keys are one limit all the same, to Backoff and to the line of who was
// deferred. Other keys go on.
func TestBackoffThroughKeyedViews(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	limits, err := keyed.New(keyed.Config[string]{MaxKeys: 10, New: func(string) (sluice.Limiter, error) {
		return limit(t, "20/s", 1), nil
	}})
	require.NoError(t, err)
	for range 30 {
		w.enqueue("t:a", 1)
		w.enqueue("t:b", 1)
	}
	g := gate(t, queue.Config{Redis: w.redis, Route: func(_ context.Context, task *asynq.Task) sluice.Limiter {
		return limits.For(task.Type())
	}})
	asked := w.backsOff("t:a", 2*time.Second, g, 20, 60)
	require.Zero(t, w.between("t:a", asked, 2*time.Second), "starts under the stopped key")
	require.GreaterOrEqual(t, w.between("t:b", asked, 2*time.Second), 28, "the other goes on, at its rate")
	last := w.last("t:a").Sub(w.begun)
	t.Logf("a done after %v (ideal 3.5s), %d deferrals", last, g.Stats().Deferred)
	w.within(3700*ms, last)
	require.LessOrEqual(t, g.Stats().Deferred, uint64(64), "as of one limit, not of one for each view")
	w.held("t:a", 20, 1)
	w.held("t:b", 20, 1)
}

// One part of All is shared by another kind of work: Backoff stops both parts, and so that other kind too.
func TestBackoffThroughAll(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	project, own, other := limit(t, "50/s", 1), limit(t, "20/s", 1), limit(t, "20/s", 1)
	limits := map[string]sluice.Limiter{
		"t:a": sluice.All(own, project),
		"t:b": project,
		"t:c": other,
	}
	for kind := range limits {
		w.enqueue(kind, 20)
	}
	asked := w.backsOff("t:a", 1500*ms, gate(t, queue.Config{Redis: w.redis, Route: byType(limits)}), 20, 60)
	require.Zero(t, w.between("t:a", asked, 1500*ms))
	require.Zero(t, w.between("t:b", asked, 1500*ms), "the shared part stops too")
	require.GreaterOrEqual(t, w.between("t:c", asked, 1500*ms), 15)
}

// The task that asked for rest comes back by Asynq's clock, into a line that has moved on without it. It took all who waited
// in that line with it once, and a third of the rate was lost.
func TestRateAfterBackoff(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 120)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "50/s", 1)})})
	asked := w.backsOff("t:a", 1500*ms, g, 10, 120)
	took := w.last("t:a").Sub(asked)
	t.Logf("120 at 50/s after a rest of 1.5s in %v (ideal 3.9s), %d deferrals", took, g.Stats().Deferred)
	w.within(4200*ms, took)
	w.held("t:a", 50, 1)
}

// The times at which deferred tasks are in Asynq's books were right before the rest. They move with it: otherwise each would
// come back for nothing and be handed back again.
func TestDeferredTasksDoNotComeBackDuringALongRest(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 60)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "20/s", 1)})})
	asked := w.backsOff("t:a", 7*time.Second, g, 8, 60)
	require.Zero(t, w.between("t:a", asked, 7*time.Second))
	took := w.last("t:a").Sub(asked)
	t.Logf("60 at 20/s after a rest of 7s in %v (ideal 9.95s), %d deferrals", took, g.Stats().Deferred)
	w.within(10400*ms, took)
	require.LessOrEqual(t, g.Stats().Deferred, uint64(64))
}

// last is when the last task of a kind started.
func (w *worker) last(kind string) (at time.Time) {
	for _, s := range w.all() {
		if s.kind == kind && s.at.After(at) {
			at = s.at
		}
	}
	return at
}
