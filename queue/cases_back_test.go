package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// A shuttle is a worker of one task whose returns nobody has to wait for: what is handed back for an hour is brought by hand.
type shuttle struct {
	*worker
	mu    sync.Mutex
	told  []queue.Deferral
	errs  []error // what the ErrorHandler heard
	nth   []int   // what RetryDelayFunc was told, of failures
	retry []int   // the retry count that each delivery saw
}

// newShuttle runs a worker whose handler says what happens at its nth call, from 0. ending, if not nil, has the last word on
// what is handed back.
func newShuttle(t *testing.T, cfg queue.Config, ending func(d queue.Deferral, err error) error, handler func(n int) error) *shuttle {
	t.Helper()
	s := &shuttle{worker: newWorker(t)}
	cfg.OnDefer = func(_ context.Context, d queue.Deferral) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, d)
	}
	outer := func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
			n, _ := asynq.GetRetryCount(ctx)
			s.mu.Lock()
			s.retry = append(s.retry, n)
			s.mu.Unlock()
			err := next.ProcessTask(ctx, task)
			if err == nil || ending == nil {
				return err
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			return ending(s.told[len(s.told)-1], err)
		})
	}
	s.run(gate(t, cfg), asynq.Config{
		Concurrency: 2, TaskCheckInterval: ms,
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.errs = append(s.errs, err)
		}),
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.nth = append(s.nth, n)
			return asynq.DefaultRetryDelayFunc(n, nil, nil)
		},
	}, func(context.Context, *asynq.Task) error { return handler(s.count("") - 1) }, outer)
	return s
}

func (s *shuttle) deferrals() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.told)
}

// bring brings the task back n times, each time that it has been handed back.
func (s *shuttle) bring(n int) {
	s.t.Helper()
	for i := range n {
		s.until("handed back", func() bool { return s.deferrals() > i })
		s.until("brought", func() bool { return s.insp.RunTask("default", "it") == nil })
	}
}

// "Not yet", twenty times with three retries, and each time that used one up or was an error in the log.
func TestATaskThatWasNotReadyUsedItsRetriesUp(t *testing.T) {
	for _, c := range []struct{ retries, back int }{{3, 20}, {25, 10}} {
		t.Run(fmt.Sprintf("MaxRetry(%d)", c.retries), func(t *testing.T) {
			t.Parallel()
			s := newShuttle(t, queue.Config{Limiter: limit(t, "unlimited", 1)}, nil, func(n int) error {
				if n < c.back {
					return queue.Defer(time.Hour)
				}
				return nil
			})
			s.enqueue("t:poll", 1, asynq.MaxRetry(c.retries), asynq.TaskID("it"))
			s.bring(c.back)
			s.finished("default", 1)
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Equal(t, make([]int, c.back+1), s.retry, "retries used")
			require.Empty(t, s.errs)
			require.Empty(t, s.nth)
		})
	}
}

// Refusals of the limit counted as attempts: of three, and the job failed unrun. Or they counted as nothing that anybody
// could read.
func TestRefusalsAndAttemptsWereOneCounter(t *testing.T) {
	t.Parallel()
	lim := limit(t, "1/5h", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	s := newShuttle(t, queue.Config{Limiter: lim, MaxWait: ms}, nil, func(int) error { return nil })
	s.enqueue("t:a", 1, asynq.MaxRetry(2), asynq.TaskID("it"))
	s.bring(24)
	s.until("handed back", func() bool { return s.deferrals() == 25 })
	require.NoError(t, lim.SetRate(sluice.PerSecond(1000)))
	s.until("brought", func() bool { return s.insp.RunTask("default", "it") == nil })
	s.finished("default", 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, make([]int, 26), s.retry)
	for i, d := range s.told {
		require.Equal(t, i+1, d.Count)
	}
	require.Empty(t, s.errs)
	require.Len(t, s.all(), 1)
}

// After a thousand returns the first real failure got the backoff of the thousandth: five days.
func TestTheFirstFailureGotTheBackoffOfTheThousandth(t *testing.T) {
	t.Parallel()
	const back = 200
	s := newShuttle(t, queue.Config{Limiter: limit(t, "unlimited", 1)}, nil, func(n int) error {
		if n < back {
			return queue.Defer(time.Hour)
		}
		return errors.New("boom")
	})
	s.enqueue("t:a", 1, asynq.MaxRetry(5), asynq.TaskID("it"))
	s.bring(back)
	s.until("failed", func() bool { return s.info("default").FailedTotal == 1 })
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Equal(t, []int{0}, s.nth, "the first step")
	info, err := s.insp.GetTaskInfo("default", "it")
	require.NoError(t, err)
	require.Equal(t, 1, info.Retried)
	require.Less(t, time.Until(info.NextProcessAt), 2*time.Minute)
}

// One job that is never ready went round for ever. Who counts its returns can end it where everybody sees it.
func TestAJobThatIsNeverReadyFilledTheTable(t *testing.T) {
	t.Parallel()
	const limitOf = 500
	s := newShuttle(t, queue.Config{Limiter: limit(t, "unlimited", 1)}, func(d queue.Deferral, err error) error {
		if d.Count > limitOf {
			return fmt.Errorf("%d times not ready: %w", limitOf, asynq.SkipRetry)
		}
		return err
	}, func(int) error { return queue.Defer(time.Hour) })
	s.enqueue("t:a", 1, asynq.MaxRetry(5), asynq.TaskID("it"))
	s.bring(limitOf)
	s.until("ended", func() bool { return s.info("default").Archived == 1 })
	info, err := s.insp.GetTaskInfo("default", "it")
	require.NoError(t, err)
	require.Contains(t, info.LastErr, "500 times not ready")
	require.Zero(t, info.Retried)
	require.Equal(t, 1, s.info("default").Size)
	require.Len(t, s.all(), limitOf+1)
}
