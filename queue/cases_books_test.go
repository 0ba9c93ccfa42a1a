package queue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// task is what Asynq's books say of one.
func (w *worker) task(id string) *asynq.TaskInfo {
	w.t.Helper()
	info, err := w.insp.GetTaskInfo("default", id)
	require.NoError(w.t, err)
	return info
}

// dueIn fails the test unless a task is handed back and due d after an instant, or less than a second later.
func (w *worker) dueIn(id string, since time.Time, d time.Duration) {
	w.t.Helper()
	w.until("in the books as handed back", func() bool { return w.task(id).State == asynq.TaskStateRetry })
	due := w.task(id).NextProcessAt
	require.False(w.t, due.Before(since.Add(d).Truncate(ms)), "%v early", since.Add(d).Sub(due))
	require.LessOrEqual(w.t, time.Until(due), d+time.Second)
}

// A task that put itself off by a minute was cloned: another ID, its retries anew, and a twin beside it.
func TestATaskCouldNotBePutOffAndStayItself(t *testing.T) {
	for _, d := range []time.Duration{60 * time.Second, 10 * time.Second} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorker(t)
			w.enqueue("t:a", 1, asynq.TaskID("it"), asynq.MaxRetry(5), asynq.Unique(time.Minute))
			asked := make(chan time.Time, 1)
			var calls atomic.Int64
			w.run(gate(t, queue.Config{Limiter: limit(t, "1000/s", 10)}), asynq.Config{
				Concurrency: 1, RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
			}, func(_ context.Context, task *asynq.Task) error {
				switch calls.Add(1) {
				case 1:
					return context.Canceled // a real failure before
				case 2:
					_, err := w.client.Enqueue(asynq.NewTask("t:a", task.Payload()), asynq.Unique(10*time.Second))
					require.ErrorIs(t, err, asynq.ErrDuplicateTask, "its next round, as a task of its own")
					asked <- time.Now()
					return queue.Defer(d)
				}
				return nil
			})
			w.await("t:a", 2, 10*time.Second)
			w.dueIn("it", <-asked, d)
			require.Equal(t, 1, w.task("it").Retried)
			require.Equal(t, 1, w.info("default").Size)
			require.NoError(t, w.insp.RunTask("default", "it"))
			w.await("t:a", 3, 10*time.Second)
			w.until("done", func() bool { return w.info("default").Size == 0 })
			for _, s := range w.all() {
				require.Equal(t, "it", s.id)
			}
		})
	}
}

// A periodic task without retries and with an ID of its own was archived when the limit refused it, and its ID kept the next
// round out until somebody deleted it.
func TestARefusedTaskKeptItsNextRoundOut(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "4/s", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	w.run(gate(t, queue.Config{Limiter: lim, MaxWait: ms}), asynq.Config{Concurrency: 1}, nil)
	for round := range 4 {
		w.enqueue("t:cron", 1, asynq.TaskID("foo"), asynq.MaxRetry(0))
		w.await("t:cron", round+1, 5*time.Second)
		w.finished("default", round+1)
	}
	require.NotZero(t, w.gate.Stats().Waited, "the limit had to refuse")
}

// A job with one try and a limit of one in ten seconds: the second of two failed unrun.
func TestTheSecondOfTwoJobsWithOneTryFailedUnrun(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 2, asynq.MaxRetry(0))
	w.run(gate(t, queue.Config{Limiter: limit(t, "1/s", 1), MaxWait: ms}), asynq.Config{Concurrency: 10}, nil)
	w.await("t:a", 2, 10*time.Second)
	w.finished("default", 2)
	w.held("t:a", 1, 1)
	w.once()
}

// 10,500 jobs without retries were rejected once each: 9,999 went to the archive, and 501 were deleted for good.
func TestFiveHundredRejectedJobsWereDeletedForGood(t *testing.T) {
	t.Parallel()
	const n = 10_500
	w := newWorker(t)
	var producers sync.WaitGroup
	for range 4 {
		producers.Go(func() { w.enqueue("t:a", n/4, asynq.MaxRetry(0)) })
	}
	producers.Wait()
	var rejected sync.Map
	w.run(gate(t, queue.Config{Limiter: limit(t, "100000/s", n)}), asynq.Config{Concurrency: 100}, func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		if _, before := rejected.LoadOrStore(id, true); !before {
			return queue.Defer(ms)
		}
		return nil
	})
	w.until("half of them are done", func() bool { return w.info("default").ProcessedTotal > n/2 })
	w.finished("default", n)
	require.Len(t, w.all(), 2*n, "each ran, and was rejected once")
}

// A task that waited longer than its broker's lease ran twice, and one whose lease was lost never came back. What is handed
// back has none.
func TestAWaitLongerThanTheLeaseRanTwice(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "1/6h", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	w.enqueue("t:a", 1, asynq.TaskID("it"))
	route := func(context.Context, *asynq.Task) sluice.Limiter { return lim }
	at := time.Now()
	w.run(gate(t, queue.Config{Redis: w.redis, Route: route}), asynq.Config{Concurrency: 4}, nil)
	w.until("handed back", func() bool { return w.gate.Stats().Deferred == 1 })
	w.until("in the books as handed back", func() bool { return w.task("it").State == asynq.TaskStateRetry })
	require.Greater(t, w.task("it").NextProcessAt.Sub(at), 6*time.Hour-time.Second)
	leases, err := w.rdb.Exists(t.Context(), "asynq:{default}:lease").Result()
	require.NoError(t, err)
	require.Zero(t, leases)
	require.Zero(t, w.info("default").Active)

	require.NoError(t, lim.SetRate(sluice.PerSecond(10)))
	w.await("t:a", 1, 5*time.Second)
	w.finished("default", 1)
	w.once()
}

// Retry-After was slept off in the worker, and then lost in the retry's own backoff.
func TestRetryAfterWasSleptOffInTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	limits := map[string]sluice.Limiter{"t:k": limit(t, "100/s", 1), "t:other": limit(t, "100/s", 1)}
	w.enqueue("t:k", 10, asynq.MaxRetry(3))
	w.enqueue("t:other", 20)
	w.enqueue("t:free", 20)
	first := make(chan start, 10)
	w.run(gate(t, queue.Config{Redis: w.redis, Route: byType(limits)}), asynq.Config{
		Concurrency: 1, RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 },
	}, func(ctx context.Context, task *asynq.Task) error {
		if task.Type() == "t:k" {
			id, _ := asynq.GetTaskID(ctx)
			first <- start{id: id, at: time.Now()}
			return queue.Backoff(120 * time.Second)
		}
		return nil
	})
	w.await("t:other", 20, 10*time.Second)
	w.await("t:free", 20, 10*time.Second)
	w.until("the rest is handed back", func() bool { return w.info("default").Retry == 10 && w.info("default").Size == 10 })
	require.Equal(t, 1, w.count("t:k"), "of the ten one was told, and none has started since")
	told := <-first
	tasks, err := w.insp.ListRetryTasks("default")
	require.NoError(t, err)
	for _, task := range tasks {
		require.False(t, task.NextProcessAt.Before(told.at.Add(120*time.Second).Truncate(ms)))
		require.Zero(t, task.Retried)
	}
	w.dueIn(told.id, told.at, 120*time.Second)
	w.unharmed("default")
}
