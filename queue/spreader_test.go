package queue_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// Spread at the producer, 10 a second: the i-th job is scheduled for its place, never before it.
func TestSpreaderSchedulesEachForItsPlace(t *testing.T) {
	w := newWorker(t)
	plan := limit(t, "10/s", 1)
	s := queue.NewSpreader(w.client, plan)
	begun := time.Now()
	for i := range 35 {
		info, err := s.Enqueue(t.Context(), asynq.NewTask("t:a", nil), asynq.MaxRetry(7))
		require.NoError(t, err)
		require.Equal(t, 7, info.MaxRetry)
		place := begun.Add(time.Duration(i) * 100 * ms)
		if i == 0 {
			require.Equal(t, asynq.TaskStatePending, info.State, "a free place is used now")
			continue
		}
		require.Equal(t, asynq.TaskStateScheduled, info.State)
		require.False(t, info.NextProcessAt.Before(place.Truncate(ms)), "%d", i)
		require.Less(t, info.NextProcessAt.Sub(place), 1100*ms, "%d", i)
		require.Zero(t, info.NextProcessAt.Nanosecond())
	}
	require.Equal(t, 34, plan.Stats().Waiting)
}

func TestSpreaderGivesBackThePlaceOfARefusedTask(t *testing.T) {
	w := newWorker(t)
	plan := limit(t, "1/min", 1)
	s := queue.NewSpreader(w.client, plan)
	_, err := s.Enqueue(t.Context(), asynq.NewTask("t:a", nil), asynq.TaskID("same"))
	require.NoError(t, err)
	_, err = s.Enqueue(t.Context(), asynq.NewTask("t:a", nil), asynq.TaskID("same"))
	require.ErrorIs(t, err, asynq.ErrTaskIDConflict)
	require.Zero(t, plan.Stats().Waiting)
	info, err := s.Enqueue(t.Context(), asynq.NewTask("t:a", nil))
	require.NoError(t, err)
	require.Less(t, time.Until(info.NextProcessAt), 61*time.Second, "the next place, not the one after")

	info, err = s.Enqueue(t.Context(), asynq.NewTask("t:a", nil), asynq.ProcessIn(time.Hour))
	require.NoError(t, err)
	require.Greater(t, time.Until(info.NextProcessAt), 59*time.Minute, "the caller's own time is later")
}

func TestSpreaderBadInput(t *testing.T) {
	w := newWorker(t)
	plan, task := limit(t, "1/s", 1), asynq.NewTask("t:a", nil)
	for _, c := range []struct {
		s    *queue.Spreader
		ctx  context.Context
		task *asynq.Task
		says string
	}{
		{nil, t.Context(), task, "queue: Spreader <nil>: must not be nil: invalid"},
		{queue.NewSpreader(nil, plan), t.Context(), task, "queue: Spreader client <nil>: must not be nil: invalid"},
		{queue.NewSpreader(w.client, nil), t.Context(), task, "queue: Spreader limiter <nil>: must not be nil: invalid"},
		{queue.NewSpreader(w.client, (*waiter.Limiter)(nil)), t.Context(), task, "queue: Spreader limiter <nil>: must not be nil: invalid"},
		{queue.NewSpreader(w.client, plan), nil, task, "queue: Spreader.Enqueue ctx <nil>: must not be nil: invalid"},
		{queue.NewSpreader(w.client, plan), t.Context(), nil, "queue: Spreader.Enqueue task <nil>: must not be nil: invalid"},
	} {
		_, err := c.s.Enqueue(c.ctx, c.task)
		require.EqualError(t, err, c.says)
		require.ErrorIs(t, err, sluice.ErrInvalid)
	}
	require.NoError(t, plan.Close())
	_, err := queue.NewSpreader(w.client, plan).Enqueue(t.Context(), task)
	require.ErrorIs(t, err, sluice.ErrClosed)
	require.Zero(t, plan.Stats().Granted)
}
