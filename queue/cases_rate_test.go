package queue_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice/queue"
)

// A limit that is set is a rate that is reached: half the queues reach a fifth of theirs, and some take three days for the
// work of one night. Each row ends at the instant at which the limit allows the last.
func TestAHundredJobsAtTenASecondTookEightySeconds(t *testing.T) {
	for _, c := range []struct {
		what  string
		rate  string
		burst int
		n     int
		last  time.Duration
	}{
		{"a thousand jobs were handed back five times each, and took 86 s", "50/s", 50, 1000, 19 * time.Second},
		{"50 to 80 s", "10/s", 1, 100, 9900 * ms},
		{"a few hundred, and then idle until the minute was over", "10/s", 1, 300, 29900 * ms},
		{"three days", "10/min", 1, 10000, 9999 * 6 * time.Second},
		{"no limit but a number of slots", "10/min", 10, 30, 2 * time.Minute},
		{"one of six, and never again", "1/min", 1, 6, 5 * time.Minute},
		{"151 of 180", "1/s", 1, 180, 179 * time.Second},
		{"two jobs, then nothing", "2/3s", 2, 10, 12 * time.Second},
		{"a hundred jobs were handed back twenty times and dropped", "1/min", 1, 100, 99 * time.Minute},
		{"a burst that could not be set: 30 s", "100/min", 100, 50, 0},
		{"a bucket of 40 that leaks 2/s", "2/s", 40, 60, 10 * time.Second},
		{"asked to wait after the first of a hundred", "100/s", 100, 100, 0},
		{"and the first above it", "100/s", 100, 101, 10 * ms},
		{"a pace", "1/500ms", 1, 10, 4500 * ms},
		{"which is not the same as a burst in the same time", "10/5s", 10, 10, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gate(t, queue.Config{Limiter: limit(t, c.rate, c.burst)})
				b := &bench{t: t, gate: g, slots: 10}
				b.run(tasksOf("t:a", c.n)...)
				require.Equal(t, c.last, b.last())
				require.Len(t, b.starts, c.n)
				require.Equal(t, c.n, b.deliveries, "each is looked at once")
				require.Zero(t, g.Stats().Deferred)
			})
		})
	}
}

// What was handed back got the delay of a failure (five minutes, three hours), or was never looked at again, or went round
// in circles until its tries were used up. It comes at its own second, by Asynq's clock alone.
func TestTwoJobsRanAndTheRestGotTheBackoffOfAFailure(t *testing.T) {
	for _, c := range []struct {
		what    string
		rate    string
		burst   int
		n       int
		slots   int
		maxWait time.Duration
		ideal   time.Duration
	}{
		{"2 jobs in 5 minutes", "2/s", 1, 20, 10, 2 * time.Second, 9500 * ms},
		{"the next in three hours", "12/min", 1, 12, 2, ms, 55 * time.Second},
		{"two jobs, then nothing", "2/3s", 2, 10, 2, ms, 12 * time.Second},
		{"98 of 100 were lost", "2/600s", 2, 100, 2, ms, 98 * 5 * time.Minute},
		{"one of six", "1/min", 1, 6, 2, ms, 5 * time.Minute},
		{"80 of 100 had been handed back too often", "1/min", 1, 100, 2, ms, 99 * time.Minute},
		{"three days", "10/min", 1, 10000, 2, ms, 9999 * 6 * time.Second},
		{"tried 4 times instead of left alone", "1/20s", 1, 5, 2, ms, 80 * time.Second},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := gate(t, queue.Config{Limiter: limit(t, c.rate, c.burst), MaxWait: c.maxWait})
				b := &bench{t: t, gate: g, slots: c.slots, backoff: 3 * time.Hour}
				b.run(tasksOf("t:a", c.n)...)
				require.Len(t, b.starts, c.n)
				require.Zero(t, b.failures)
				require.NotZero(t, g.Stats().Deferred)
				require.GreaterOrEqual(t, b.last(), c.ideal)
				require.LessOrEqual(t, b.last(), c.ideal+2*time.Second)
				require.LessOrEqual(t, b.deliveries, 2*c.n, "handed back once")
			})
		})
	}
}

// With hundreds of thousands of limited jobs the queue stopped for good. Each gets a second of its own to come back in, none of
// them is left out, and the last is no later than the limit makes it.
func TestAHundredThousandLimitedJobsStoppedTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n, perSecond = 100_000, 12
		lim := limit(t, "12/s", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		g := gate(t, queue.Config{Limiter: lim, MaxWait: 1})
		ctx, cfg := served(t.Context(), g, asynq.Config{Concurrency: 2})
		h := g.Middleware(asynq.NotFoundHandler())
		task, begun, back, most := asynq.NewTask("t:a", nil), time.Now(), map[time.Duration]int{}, 0
		for range n {
			err := h.ProcessTask(ctx, task)
			if !queue.IsDeferred(err) {
				require.NoError(t, err)
			}
			in := time.Since(begun) + cfg.RetryDelayFunc(0, err, nil)
			back[in]++
			most = max(most, back[in])
		}
		require.Equal(t, perSecond, most, "in one second")
		for s := range n / perSecond {
			require.NotZero(t, back[time.Duration(s+1)*time.Second], "second %d", s+1)
		}
		require.LessOrEqual(t, len(back), n/perSecond+1)
	})
}

// 999 of a thousand came back in the same instant to find that one may run.
func TestAHerdCameBackForOneTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, queue.Config{Limiter: limit(t, "1/s", 1), MaxWait: 1})
		b := &bench{t: t, gate: g, slots: 4, backoff: time.Hour}
		b.run(tasksOf("t:a", 1000)...)
		require.Equal(t, 999*time.Second, b.last())
		require.Equal(t, 1999, b.deliveries)
		b.law("", 0, 1, time.Second)
	})
}

// Waits of tasks that were scheduled, or that have failed, went past the limit.
func TestCountdownsAndRetriesIgnoredTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed sync.Map
		g := gate(t, queue.Config{Limiter: limit(t, "2/s", 1)})
		b := &bench{t: t, gate: g, slots: 10, backoff: time.Second}
		b.handle = func(_ context.Context, task *asynq.Task) error {
			if _, before := failed.LoadOrStore(string(task.Payload()), true); !before {
				return errors.New("boom")
			}
			return nil
		}
		b.run(tasksOf("t:a", 6)...)
		require.Equal(t, 6, b.failures)
		for i, after := range b.after {
			require.Equal(t, time.Duration(i)*500*ms, after)
		}
		require.Len(t, b.after, 12)
	})
}

// A window's arithmetic stood still over midnight, and let too many through after an idle night.
func TestALimitStuckAtMidnightAndOpenInTheMorning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate(t, queue.Config{Limiter: limit(t, "1/min", 1)})
		midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		time.Sleep(time.Until(midnight.Add(-30 * time.Second)))
		b := &bench{t: t, gate: g, slots: 2}
		b.run(tasksOf("t:a", 1)...)
		require.Zero(t, b.last())
		time.Sleep(time.Until(midnight.Add(time.Minute)))
		b.run(tasksOf("t:a", 1)...)
		require.Zero(t, b.last(), "90 s later")

		time.Sleep(9 * time.Hour)
		b = &bench{t: t, gate: g, slots: 10}
		b.run(tasksOf("t:a", 10)...)
		require.Equal(t, 9*time.Minute, b.last())
		b.law("", 0, 1, time.Minute)
	})
}
