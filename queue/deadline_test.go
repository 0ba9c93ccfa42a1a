package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// Deferred beyond its Deadline a task came back dead: Asynq does not call the handler any more. It must start by then if
// the limit allows it, and else fail with an error that says so.
func TestDeadlineBeforeItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "2/s", 1)
	deadline := time.Now().Truncate(time.Second).Add(8 * time.Second)
	w.enqueue("t:a", 30, asynq.Deadline(deadline), asynq.MaxRetry(1))
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": lim})})
	var mu sync.Mutex
	var failures []error
	w.run(g, asynq.Config{Concurrency: 10, ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, err)
	})}, nil)

	w.until("each has started or failed", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(failures)+w.count("t:a") >= 30
	})
	require.GreaterOrEqual(t, w.count("t:a"), 12, "in time, as many as the limit allows")
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, failures)
	for _, err := range failures {
		require.ErrorIs(t, err, sluice.ErrDeadline, "and not a bare ctx error from a task that nobody called")
		require.False(t, queue.IsDeferred(err))
	}
	for _, s := range w.all() {
		require.True(t, s.at.Before(deadline))
	}
	w.once()
}

// The last attempt of a task that cannot make it fails with a clear error, and not before its time is up.
func TestLastAttemptThatCannotStartInTime(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	lim := limit(t, "1/min", 1)
	require.NoError(t, lim.Wait(t.Context(), 1))
	failed := make(chan error, 1)
	w.enqueue("t:a", 1, asynq.Timeout(2*time.Second), asynq.MaxRetry(0))
	w.run(gate(t, queue.Config{Limiter: lim}), asynq.Config{ErrorHandler: asynq.ErrorHandlerFunc(
		func(_ context.Context, _ *asynq.Task, err error) { failed <- err })}, nil)
	select {
	case err := <-failed:
		require.ErrorIs(t, err, sluice.ErrDeadline)
		require.GreaterOrEqual(t, time.Since(w.begun), 1900*ms)
	case <-time.After(10 * time.Second):
		require.Fail(t, "no answer")
	}
	require.Zero(t, lim.Stats().Waiting)
}

func TestLastAttemptWhoseHandlerAsksForTooLong(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	failed := make(chan error, 1)
	w.enqueue("t:a", 1, asynq.Timeout(2*time.Second), asynq.MaxRetry(0))
	w.run(gate(t, queue.Config{Limiter: limit(t, "10/s", 1)}), asynq.Config{ErrorHandler: asynq.ErrorHandlerFunc(
		func(_ context.Context, _ *asynq.Task, err error) { failed <- err })},
		func(context.Context, *asynq.Task) error { return queue.Defer(time.Minute) })
	select {
	case err := <-failed:
		require.ErrorIs(t, err, sluice.ErrDeadline)
		require.False(t, queue.IsDeferred(err))
		require.Contains(t, err.Error(), "1m0s")
	case <-time.After(10 * time.Second):
		require.Fail(t, "no answer")
	}
}

// Who says that it is the end, around a deferral, has the last word, and the user's functions hear of it.
func TestSkipRetryAroundADeferralIsTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	told := make(chan error, 1)
	w.enqueue("t:a", 1, asynq.MaxRetry(3))
	w.run(gate(t, queue.Config{Limiter: limit(t, "10/s", 1)}), asynq.Config{ErrorHandler: asynq.ErrorHandlerFunc(
		func(_ context.Context, _ *asynq.Task, err error) { told <- err })},
		func(context.Context, *asynq.Task) error { return errors.Join(queue.Defer(0), asynq.SkipRetry) })
	require.ErrorIs(t, <-told, asynq.SkipRetry)
	w.until("archived", func() bool { return w.info("default").Archived == 1 })
}
