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

// A copy in the queue would lose all this; a task that is handed back is the same task.
func TestDeferredTaskKeepsItsOptions(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "1/s", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	opts := []asynq.Option{asynq.TaskID("one"), asynq.Retention(time.Hour), asynq.Unique(time.Hour), asynq.MaxRetry(2), asynq.Timeout(time.Minute)}
	w.enqueue("t:a", 1, opts...)
	g := gate(t, queue.Config{Redis: w.redis, MaxWait: 200 * ms, Route: byType(map[string]sluice.Limiter{"t:a": lim})})
	w.run(g, asynq.Config{Concurrency: 4}, func(_ context.Context, task *asynq.Task) error {
		_, err := task.ResultWriter().Write([]byte("done"))
		return err
	})
	w.until("deferred", func() bool { return g.Stats().Deferred == 1 })
	_, err := w.client.Enqueue(asynq.NewTask("t:b", nil), asynq.TaskID("one"))
	require.ErrorIs(t, err, asynq.ErrTaskIDConflict, "its ID stays taken")
	_, err = w.client.Enqueue(asynq.NewTask("t:a", []byte("0")), asynq.Unique(time.Hour))
	require.ErrorIs(t, err, asynq.ErrDuplicateTask, "its lock holds")

	w.await("t:a", 1, 10*time.Second)
	w.until("completed", func() bool { return w.info("default").Completed == 1 })
	info, err := w.insp.GetTaskInfo("default", "one")
	require.NoError(t, err)
	require.Equal(t, "done", string(info.Result))
	require.Equal(t, time.Hour, info.Retention)
	require.Equal(t, time.Minute, info.Timeout)
	require.Equal(t, 2, info.MaxRetry)
	require.Zero(t, info.Retried)
	require.Contains(t, info.LastErr, "queue: deferred", "as the package comment says")
	w.unharmed("default")
}

// Limits are ignored for tasks with a countdown elsewhere: all that one second holds start together.
func TestScheduledTasksAreLimitedToo(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 8, asynq.ProcessIn(time.Second))
	g := gate(t, queue.Config{Limiter: limit(t, "4/s", 1)})
	w.run(g, asynq.Config{Concurrency: 10}, nil)
	w.await("t:a", 8, 15*time.Second)
	w.held("t:a", 4, 1)
	all := w.all()
	w.within(1900*ms, all[7].at.Sub(all[0].at)) // ideal 1.75 s
	w.finished("default", 8)
	w.once()
}

// The members of a group are aggregated as ever, and what comes of them is limited and deferred like any other task.
func TestAggregatedTasksAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "2/s", 1)
	for _, group := range []string{"a", "b", "c", "d", "e"} {
		w.enqueue("t:member", 3, asynq.Group(group))
	}
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:group": lim})})
	w.run(g, asynq.Config{Concurrency: 4, GroupGracePeriod: time.Second, GroupMaxSize: 3,
		GroupAggregator: asynq.GroupAggregatorFunc(func(string, []*asynq.Task) *asynq.Task { return asynq.NewTask("t:group", nil) }),
	}, nil)
	w.await("t:group", 5, 20*time.Second)
	w.held("t:group", 2, 1)
	require.NotZero(t, g.Stats().Deferred)
	w.until("nothing left", func() bool { return w.info("default").Size == 0 })
	w.unharmed("default")
	w.once()
}
