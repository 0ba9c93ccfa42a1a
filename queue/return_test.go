package queue_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// Asynq's own clock brings a deferred task back a second early or six late. Called, it starts in time for its turn.
func TestDeferredTasksStartInTheirSlots(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 16)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "3/s", 1)})})
	w.run(g, asynq.Config{Concurrency: 8}, nil)
	w.await("t:a", 16, 20*time.Second)
	all := w.all()
	w.mu.Lock()
	stall := w.stall
	w.mu.Unlock()
	var worst time.Duration
	for i, s := range all {
		late := s.at.Sub(all[0].at) - time.Duration(i)*time.Second/3
		worst = max(worst, late)
		require.GreaterOrEqual(t, late, -stall-ms, "start %d is early", i)
		require.LessOrEqual(t, late, 100*ms+stall, "start %d is late", i)
	}
	t.Logf("16 at 3/s: the latest %v after its slot, %d deferrals", worst, g.Stats().Deferred)
	require.GreaterOrEqual(t, g.Stats().Deferred, uint64(10))
	w.finished("default", 16)
	w.once()
}

// First come, first served within a limit, as far as Asynq allows: whoever is deferred keeps his place among the deferred.
// Those that find a slot to wait in when the worker starts go before them.
func TestOrderWithinALimit(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	const n = 100
	for i := range n {
		_, err := w.client.Enqueue(asynq.NewTask("t:a", fmt.Append(nil, i)))
		require.NoError(t, err)
	}
	var mu sync.Mutex
	var order []int
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": limit(t, "40/s", 1)})})
	w.run(g, asynq.Config{Concurrency: 10}, func(_ context.Context, task *asynq.Task) error {
		i, err := strconv.Atoi(string(task.Payload()))
		mu.Lock()
		defer mu.Unlock()
		order = append(order, i)
		return err
	})
	w.await("t:a", n, 20*time.Second)
	w.finished("default", n)
	mu.Lock()
	defer mu.Unlock()
	most, sum := 0, 0
	for at, i := range order {
		off := max(at-i, i-at)
		sum += off
		most = max(most, off)
	}
	t.Logf("%d tasks: off their place by %.1f on the mean, by %d at most: %v", n, float64(sum)/n, most, order)
	require.LessOrEqual(t, most, 20, "twice the slots")
}
