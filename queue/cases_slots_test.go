package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// A task waited 29 of its 30 minutes, and its Timeout cut off the 2 minutes of work: it ran again.
func TestTheWaitAteTheTasksOwnTime(t *testing.T) {
	for _, c := range []struct {
		wait       time.Duration
		deliveries int
	}{
		{29 * time.Minute, 2}, // handed back, and its time begins anew
		{14 * time.Minute, 1}, // in place: less than half
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := limit(t, "1/"+c.wait.String(), 1)
			require.NoError(t, lim.Wait(t.Context(), 1))
			b := &bench{t: t, slots: 1, timeout: 30 * time.Minute, gate: gate(t, queue.Config{Limiter: lim})}
			time.Sleep(100 * ms)
			b.handle = func(ctx context.Context, _ *asynq.Task) error {
				time.Sleep(2 * time.Minute)
				return ctx.Err()
			}
			b.run(tasksOf("t:a", 1)...)
			require.Equal(t, c.deliveries, b.deliveries)
			require.Len(t, b.starts, 1, "ran again")
			require.Zero(t, b.failures)
			require.InDelta(t, c.wait, b.last(), float64(time.Second))
		})
	}
}

// Five handlers that ignored their ctx held five places of the limit for ever, and who waited for one did not look at his.
func TestHungHandlersHeldTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, queue.Config{Limiter: limit(t, "5/s", 5)})
		b := &bench{t: t, gate: g, slots: 6, timeout: time.Hour}
		b.handle = func(_ context.Context, task *asynq.Task) error {
			if task.Type() == "t:hung" {
				time.Sleep(100 * time.Hour)
			}
			return nil
		}
		b.run(append(tasksOf("t:hung", 5), tasksOf("t:a", 101)...)...)
		require.Equal(t, 20200*ms, b.last(), "through the one slot that is left, at the whole rate")
	})
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "1/24h", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		g := gate(t, queue.Config{Limiter: lim})
		ended := make(chan error, 5)
		begun := time.Now()
		for range 5 {
			go func() { // no Configure: cannot be handed back, as on a last attempt
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				ended <- process(ctx, g, nil)
			}()
		}
		for range 5 {
			require.ErrorIs(t, <-ended, sluice.ErrDeadline)
		}
		require.Less(t, time.Since(begun), time.Hour)
		synctest.Wait()
		require.Zero(t, lim.Stats().Waiting, "places given back")
		require.Zero(t, g.Stats().Waiting)
	})
}

// 10 in 10 s showed 15 active: it is starts that are limited, and not how many run.
func TestALimitOfTenShowedFifteenActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most atomic.Int64
		b := &bench{t: t, slots: 30, gate: gate(t, queue.Config{Limiter: limit(t, "10/10s", 1)})}
		b.handle = func(context.Context, *asynq.Task) error {
			most.Store(max(most.Load(), active.Add(1)))
			time.Sleep(15*time.Second - 1)
			active.Add(-1)
			return nil
		}
		b.run(tasksOf("t:a", 60)...)
		require.EqualValues(t, 15, most.Load())
		b.law("", 9, 1, 10*time.Second)
		require.Equal(t, 59*time.Second, b.last())
	})
}

// A limit of just what the workers could do anyway halved what they did.
func TestALimitThatNobodyReachedHalvedTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last [2]time.Duration
		for i, rate := range []string{"8/s", "unlimited"} { // 40 slots, 5 s each
			lim := limit(t, rate, 40)
			b := &bench{t: t, slots: 40, gate: gate(t, queue.Config{Limiter: lim})}
			b.handle = func(context.Context, *asynq.Task) error { time.Sleep(5 * time.Second); return nil }
			b.run(tasksOf("t:a", 4000)...)
			last[i] = b.last()
		}
		require.Equal(t, last[1], last[0])
		require.Equal(t, 495*time.Second, last[0])
	})
}

// A thousand jobs found out one by one that the other side was closed for a minute.
func TestEachOfAThousandJobsSawThe429(t *testing.T) {
	for _, c := range []struct {
		slots   int
		maxWait time.Duration
	}{
		{10, 0},                // all wait in place
		{250, 2 * time.Second}, // all are handed back, to Asynq's clock
	} {
		synctest.Test(t, func(t *testing.T) {
			opens, refused := time.Now().Add(time.Minute), 0
			g := gate(t, queue.Config{Limiter: limit(t, "100/s", 1), MaxWait: c.maxWait})
			b := &bench{t: t, slots: c.slots, gate: g, backoff: time.Hour}
			b.handle = func(context.Context, *asynq.Task) error {
				if time.Now().Before(opens) {
					refused++
					return queue.Backoff(time.Until(opens))
				}
				return nil
			}
			b.run(tasksOf("t:a", 1000)...)
			require.Equal(t, 1, refused)
			require.Equal(t, 1, b.by(time.Minute-1))
			require.GreaterOrEqual(t, b.last(), time.Minute+9990*ms)
			require.Less(t, b.last(), time.Minute+12*time.Second)
			require.Zero(t, b.failures)
		})
	}
}

// While the other side is closed for five hours, each of five jobs asked every five minutes and burnt its retries.
func TestAllJobsProbedAClosedWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := time.Now().Add(5 * time.Hour)
		probes := 0
		b := &bench{t: t, slots: 5, gate: gate(t, queue.Config{Limiter: limit(t, "1/s", 1)})}
		b.handle = func(context.Context, *asynq.Task) error {
			if time.Now().Before(opens) {
				probes++
				return queue.Backoff(5 * time.Minute)
			}
			return nil
		}
		b.run(tasksOf("t:a", 5)...)
		require.Equal(t, 60, probes, "one in each cooldown")
		require.Zero(t, b.failures)
		require.Less(t, b.last(), 5*time.Hour+time.Minute)
	})
}
