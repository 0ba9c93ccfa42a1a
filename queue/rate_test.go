package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// Asynq's recipe needs 85.6 s for this with a burst of 50, and with a burst of 1 it never ends.
func TestThousandJobsAtFiftyASecondTakeTwentySeconds(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 1000)
	g := gate(t, queue.Config{Limiter: limit(t, "50/s", 1)})
	before := w.commands()
	w.run(g, asynq.Config{Concurrency: 10}, nil)

	took := w.await("t:a", 1000, 30*time.Second)
	t.Logf("drained in %v (ideal 19.98s), peak %d in a second, %d commands", took, w.peak("", time.Second), w.commands()-before)
	w.within(20600*ms, took)
	w.held("", 50, 1)
	require.Zero(t, g.Stats().Deferred)
	require.EqualValues(t, 1000, g.Stats().Started)
	w.finished("default", 1000)
	w.once()
}

// A rejection is archived on a task's last attempt, and the archive throws the oldest away.
func TestJobsWithoutRetriesAreNotArchivedForWaiting(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 200, asynq.MaxRetry(0))
	g := gate(t, queue.Config{Limiter: limit(t, "50/s", 1), MaxWait: 50 * ms})
	w.run(g, asynq.Config{Concurrency: 10}, nil)

	took := w.await("t:a", 200, 15*time.Second)
	w.held("", 50, 1)
	require.Zero(t, g.Stats().Deferred)
	w.finished("default", 200)
	w.once()
	t.Logf("200 tasks without retries in %v (ideal 3.98s)", took)
}

// One slow kind of work must not hold the slots that another needs: waiting in place alone took 7 to 10 s for b here.
func TestUnlimitedJobsPassLimitedOnes(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	slow := limit(t, "10/s", 1)
	g := gate(t, queue.Config{Redis: w.redis, Route: func(_ context.Context, task *asynq.Task) sluice.Limiter {
		if task.Type() == "t:slow" {
			return slow
		}
		return nil
	}})
	w.enqueue("t:slow", 60, asynq.Queue("a"))
	w.enqueue("t:free", 20, asynq.Queue("b"))
	before := w.commands()
	w.run(g, asynq.Config{Concurrency: 10, Queues: map[string]int{"a": 1, "b": 1}}, nil)

	free := w.await("t:free", 20, 10*time.Second)
	took := w.await("t:slow", 60, 20*time.Second)
	s := g.Stats()
	t.Logf("free work done after %v; 60 slow ones in %v (ideal 5.9s), %d deferrals, %d commands", free, took, s.Deferred, w.commands()-before)
	w.within(500*ms, free)
	w.within(6200*ms, took)
	w.held("t:slow", 10, 1)
	require.LessOrEqual(t, s.Deferred, uint64(66))
	w.finished("a", 60)
	w.finished("b", 20)
	w.once()
}
