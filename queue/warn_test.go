package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// A book is a log that can be read while it is written.
type book struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *book) lines(with string) (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.buf.String()) {
		if strings.Contains(line, with) {
			all = append(all, line)
		}
	}
	return all
}

func (b *book) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// Thousands of deferrals a second must not become thousands of lines, and none may go uncounted.
func TestDeferralsAreToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "1/h", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		var log book
		g := gate(t, queue.Config{Limiter: lim, MaxWait: ms, Logger: log.logger()})
		ctx, _ := served(t.Context(), g, asynq.Config{})
		for range 121 { // two minutes
			require.True(t, queue.IsDeferred(process(ctx, g, nil)))
			time.Sleep(time.Second)
		}
		lines := log.lines("handed back")
		require.Len(t, lines, 3, lines)
		require.Contains(t, lines[0], "tasks=1 ")
		require.Contains(t, lines[1], "tasks=60 ")
		require.Contains(t, lines[2], "tasks=60 ")
		require.Contains(t, lines[2], "level=INFO")
		require.Contains(t, lines[2], "type=t:a")
	})
}

// 70 in 60 s with one slot and jobs of 5 s gives 12, and the user wonders what is wrong with the limit.
func TestSlotsTooFewForTheRateAreToldOnce(t *testing.T) {
	for _, c := range []struct {
		slots int
		takes time.Duration
		warns int
	}{
		{1, 5 * time.Second, 1},        // 12 a minute
		{5, 5 * time.Second, 1},        // 60 a minute
		{6, 5 * time.Second, 0},        // 72: enough
		{1, 100 * time.Millisecond, 0}, // the limit is what holds it up
	} {
		synctest.Test(t, func(t *testing.T) {
			var log book
			g := gate(t, queue.Config{Limiter: limit(t, "70/min", 1), Logger: log.logger()})
			ctx, _ := served(t.Context(), g, asynq.Config{Concurrency: c.slots})
			begun := time.Now()
			var all sync.WaitGroup
			for range c.slots {
				all.Go(func() {
					for time.Since(begun) < 10*time.Minute {
						_ = process(ctx, g, func(context.Context, *asynq.Task) error { time.Sleep(c.takes); return nil })
					}
				})
			}
			all.Wait()
			lines := log.lines("too slow")
			require.Len(t, lines, c.warns, "%+v %v", c, lines)
			if c.warns > 0 {
				require.Contains(t, lines[0], "needed=6")
			}
		})
	}
}

// Nothing is to do while the queue is nearly empty: that the slots could not reach the rate is nobody's trouble then.
func TestFewTasksDoNotWarn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log book
		g := gate(t, queue.Config{Limiter: limit(t, "70/min", 1), Logger: log.logger()})
		ctx, _ := served(t.Context(), g, asynq.Config{Concurrency: 2})
		for range 100 {
			require.NoError(t, process(ctx, g, func(context.Context, *asynq.Task) error { time.Sleep(5 * time.Second); return nil }))
		}
		require.Empty(t, log.lines("too slow"))
	})
}

// A Unique lock that ends before its task is back lets a twin in, and both run. Asynq gives no way to extend it.
func TestUniqueLockShorterThanTheWaitIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ttl   time.Duration
		warns int
	}{{2 * time.Second, 1}, {time.Hour, 0}} {
		w := newWorker(t)
		lim := limit(t, "1/min", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		w.enqueue("t:a", 10, asynq.Unique(c.ttl))
		var log book
		g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": lim}), Logger: log.logger()})
		w.run(g, asynq.Config{Concurrency: 4}, nil)
		w.until("deferred", func() bool { return g.Stats().Deferred == 10 })
		require.Len(t, log.lines("Unique lock"), c.warns)
		if c.warns > 0 {
			require.Contains(t, log.lines("Unique lock")[0], "type=t:a")
		}
	}
}

// Without Redis what comes back comes in whole seconds: a MaxWait of less leaves the limit idle, and the log says so once.
func TestAShortMaxWaitWithoutRedisIsTold(t *testing.T) {
	for _, c := range []struct {
		rate    string
		maxWait time.Duration
		redis   asynq.RedisConnOpt
		told    int
	}{
		{"50/s", 200 * ms, nil, 1},
		{"50/s", time.Second, nil, 0},
		{"50/s", 200 * ms, asynq.RedisClientOpt{Addr: "127.0.0.1:1"}, 0}, // called back in time
		{"1/s", 200 * ms, nil, 0},                                        // no more than one comes back in a second
	} {
		var log book
		lim := limit(t, c.rate, 1)
		g := gate(t, queue.Config{Limiter: lim, MaxWait: c.maxWait, Redis: c.redis, Logger: log.logger()})
		ctx, _ := served(t.Context(), g, asynq.Config{})
		require.NoError(t, lim.Pause(ctx, time.Hour))
		for range 3 {
			require.True(t, queue.IsDeferred(process(ctx, g, nil)))
		}
		require.Len(t, log.lines("MaxWait is less than a second"), c.told, "%+v", c)
	}
}
