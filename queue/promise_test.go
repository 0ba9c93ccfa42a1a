package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// Other middlewares wrap errors. A type assertion then counts each deferral as a failure, and the task is archived.
func TestWrappedDeferralIsNotAFailure(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 1, asynq.MaxRetry(1))
	var asked, told atomic.Int32
	var calls atomic.Int32
	cfg := asynq.Config{
		Concurrency: 2,
		IsFailure:   func(error) bool { asked.Add(1); return true },
		ErrorHandler: asynq.ErrorHandlerFunc(func(context.Context, *asynq.Task, error) {
			told.Add(1)
		}),
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { asked.Add(1); return 0 },
	}
	wrap := func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			if err := next.ProcessTask(ctx, task); err != nil {
				return fmt.Errorf("tracing: %w", fmt.Errorf("metrics: %w", err))
			}
			return nil
		})
	}
	g := gate(t, queue.Config{Limiter: limit(t, "1000/s", 10)})
	w.run(g, cfg, func(context.Context, *asynq.Task) error {
		if calls.Add(1) <= 2 {
			return fmt.Errorf("not yet: %w", queue.Defer(0))
		}
		return nil
	}, wrap)

	w.await("t:a", 3, 10*time.Second)
	w.finished("default", 1)
	require.Zero(t, asked.Load(), "the user's functions were asked about a deferral")
	require.Zero(t, told.Load(), "the ErrorHandler was told a deferral")
	require.EqualValues(t, 2, g.Stats().Deferred)
}

func TestUsersFunctionsAreAskedAboutEverythingElse(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	boom := errors.New("boom")
	var mu sync.Mutex
	heard := map[string]int{}
	note := func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, boom) {
			heard[what]++
		} else {
			heard[what+" of "+err.Error()]++
		}
	}
	cfg := asynq.Config{
		IsFailure:      func(err error) bool { note("IsFailure", err); return false },
		RetryDelayFunc: func(_ int, err error, _ *asynq.Task) time.Duration { note("RetryDelayFunc", err); return time.Hour },
		ErrorHandler:   asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) { note("ErrorHandler", err) }),
	}
	w.enqueue("t:a", 1, asynq.MaxRetry(3))
	w.run(gate(t, queue.Config{Limiter: limit(t, "1000/s", 10)}), cfg, func(context.Context, *asynq.Task) error { return boom })

	w.until("in the retry set", func() bool { return w.info("default").Retry == 1 })
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, map[string]int{"IsFailure": 1, "RetryDelayFunc": 1, "ErrorHandler": 1}, heard)
	tasks, err := w.insp.ListRetryTasks("default")
	require.NoError(t, err)
	require.Zero(t, tasks[0].Retried, "the user's IsFailure said no")
	require.InDelta(t, time.Hour, time.Until(tasks[0].NextProcessAt), float64(5*time.Second))
}

// A wait longer than the Timeout used to end in "context deadline exceeded" and a retry used up.
func TestShortTimeoutIsNotEatenByTheBacklog(t *testing.T) {
	for _, redis := range []bool{true, false} {
		t.Run(fmt.Sprintf("redis=%v", redis), func(t *testing.T) {
			t.Parallel()
			w := newWorker(t)
			w.enqueue("t:a", 40, asynq.Timeout(2*time.Second), asynq.MaxRetry(2))
			cfg := queue.Config{Limiter: limit(t, "4/s", 1)}
			if redis {
				cfg.Redis = w.redis
			}
			g := gate(t, cfg)
			var failed atomic.Int32
			w.run(g, asynq.Config{Concurrency: 10, ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
				failed.Add(1)
			})}, nil)

			took := w.await("t:a", 40, 25*time.Second)
			s := g.Stats()
			t.Logf("40 tasks with Timeout(2s) at 4/s in %v (ideal 9.75s), %d deferrals", took, s.Deferred)
			require.NotZero(t, s.Deferred, "10 tasks at 4/s need more than half of 2s")
			require.Zero(t, failed.Load())
			w.held("", 4, 1)
			w.finished("default", 40)
			w.once()
		})
	}
}

// Cancelling the handlers at shutdown archives tasks without retries; not cancelling them takes 8 s.
func TestDrainGivesSlotsAndTasksBackAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "1/min", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	w.enqueue("t:a", 30, asynq.MaxRetry(3))
	g := gate(t, queue.Config{Limiter: lim, Redis: w.redis})
	w.run(g, asynq.Config{Concurrency: 10}, nil)
	w.until("all slots wait", func() bool { return g.Stats().Waiting == 10 })

	w.srv.Stop()
	begun := time.Now()
	g.Drain()
	w.until("slots free", func() bool { return g.Stats().Waiting == 0 })
	free := time.Since(begun)
	w.srv.Shutdown()
	down := time.Since(begun)
	t.Logf("slots free after %v, server down after %v", free, down)
	w.within(50*ms, free)
	w.within(150*ms, down)
	require.Zero(t, lim.Stats().Waiting, "places given back")
	require.EqualValues(t, 10, g.Stats().Deferred)

	info := w.info("default")
	require.Equal(t, 30, info.Pending+info.Retry)
	tasks, err := w.insp.ListRetryTasks("default")
	require.NoError(t, err)
	for _, task := range tasks {
		require.Zero(t, task.Retried)
		require.False(t, task.NextProcessAt.After(time.Now()), "due at once")
	}
	w.unharmed("default")
	require.Empty(t, w.all(), "nothing started")
}

func TestDrainLeavesLastAttemptsToAsynq(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "1/min", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	w.enqueue("t:a", 3, asynq.MaxRetry(0))
	g := gate(t, queue.Config{Limiter: lim, MaxWait: ms})
	w.run(g, asynq.Config{Concurrency: 3, ShutdownTimeout: time.Second}, nil)
	w.until("all slots wait", func() bool { return g.Stats().Waiting == 3 })

	w.srv.Stop()
	g.Drain()
	w.srv.Shutdown()
	w.until("places given back", func() bool { return lim.Stats().Waiting == 0 })
	require.Equal(t, 3, w.info("default").Pending)
	w.unharmed("default")
	require.Zero(t, g.Stats().Deferred)
}

// A polling job says "not yet". That must cost neither retries nor errors, on the last attempt either, and a job must
// never be back before the time it asked for.
func TestHandlerDefersItsOwnTask(t *testing.T) {
	for _, retries := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("MaxRetry(%d)", retries), func(t *testing.T) {
			t.Parallel()
			w := newWorker(t)
			w.enqueue("t:poll", 1, asynq.MaxRetry(retries))
			var told []queue.Deferral
			g := gate(t, queue.Config{
				Limiter: limit(t, "1000/s", 10),
				OnDefer: func(_ context.Context, d queue.Deferral) { told = append(told, d) },
			})
			w.run(g, asynq.Config{Concurrency: 2}, func(context.Context, *asynq.Task) error {
				if w.count("t:poll") < 4 {
					return queue.Defer(300 * ms)
				}
				return nil
			})
			w.await("t:poll", 4, 15*time.Second)
			w.finished("default", 1)
			all := w.all()
			for i := 1; i < len(all); i++ {
				gap := all[i].at.Sub(all[i-1].at)
				require.GreaterOrEqual(t, gap, 300*ms)
				require.Less(t, gap, 2500*ms)
			}
			if retries == 0 {
				require.Empty(t, told, "kept in its slot")
				return
			}
			require.Len(t, told, 3)
			for i, d := range told {
				require.Equal(t, i+1, d.Count)
				require.Equal(t, all[0].id, d.TaskID)
				require.Equal(t, "t:poll", d.Type)
				require.Equal(t, "default", d.Queue)
				require.Equal(t, 1, d.N)
				require.InDelta(t, 300*ms, d.In, float64(20*ms))
			}
		})
	}
}

// A 429 with Retry-After stops one limit, not the jobs one by one, and not the others.
func TestBackoffStopsItsLimiterOnly(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	a, b := limit(t, "50/s", 1), limit(t, "20/s", 1)
	g := gate(t, queue.Config{Redis: w.redis, Route: func(_ context.Context, task *asynq.Task) sluice.Limiter {
		if task.Type() == "t:a" {
			return a
		}
		return b
	}})
	w.enqueue("t:a", 20, asynq.MaxRetry(0), asynq.Queue("a"))
	w.enqueue("t:a", 20, asynq.MaxRetry(5), asynq.Queue("a"))
	w.enqueue("t:b", 60, asynq.Queue("b"))
	var once sync.Once
	var stopped time.Time
	w.run(g, asynq.Config{Concurrency: 30, Queues: map[string]int{"a": 1, "b": 1}}, func(ctx context.Context, task *asynq.Task) (err error) {
		max, _ := asynq.GetMaxRetry(ctx)
		if task.Type() == "t:a" && max > 0 {
			once.Do(func() { stopped = time.Now(); err = queue.Backoff(3 * time.Second) })
		}
		return err
	})
	w.await("t:a", 41, 20*time.Second)
	w.await("t:b", 60, 20*time.Second)
	during := map[string]int{}
	for _, s := range w.all() {
		if s.at.After(stopped.Add(ms)) && s.at.Before(stopped.Add(3*time.Second)) {
			during[s.kind]++
		}
	}
	require.Zero(t, during["t:a"], "starts under the stopped limit")
	require.Greater(t, during["t:b"], 40, "others go on")
	w.finished("a", 40)
	w.finished("b", 60)
}

// Its limiter failing is not the task's failure, and what can never be granted is.
func TestLimiterErrors(t *testing.T) {
	outage := errors.New("redis: connection refused")
	for _, c := range []struct {
		err   error
		fails bool
	}{
		{outage, false},
		{&sluice.Refusal{Reason: sluice.ErrClosed, RetryAfter: sluice.Never}, false},
		{&sluice.Refusal{Reason: sluice.ErrFull, RetryAfter: time.Second}, false},
		{&sluice.Refusal{Reason: sluice.ErrMaxWait, RetryAfter: time.Minute}, false},
		{&sluice.Refusal{Reason: sluice.ErrDeadline, RetryAfter: time.Minute}, false},
		{&sluice.Refusal{Reason: sluice.ErrTooLarge, RetryAfter: sluice.Never}, true},
		{fmt.Errorf("bad n: %w", sluice.ErrInvalid), true},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			g := gate(t, queue.Config{Limiter: broken{limit(t, "1/s", 1), c.err}})
			ctx, cfg := served(t.Context(), g, asynq.Config{})
			err := g.Middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
				require.Fail(t, "started")
				return nil
			})).ProcessTask(ctx, asynq.NewTask("t:a", nil))
			require.ErrorIs(t, err, c.err, "the error tells why")
			require.Equal(t, !c.fails, queue.IsDeferred(err))
			require.Equal(t, c.fails, cfg.IsFailure(err))
			if !c.fails {
				require.Less(t, cfg.RetryDelayFunc(0, err, nil), 62*time.Second)
			}
		})
	}
}

type broken struct {
	sluice.Limiter
	err error
}

func (b broken) Wait(context.Context, int) error { return b.err }
