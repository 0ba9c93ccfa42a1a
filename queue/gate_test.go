package queue_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

func TestNewGateNamesFieldValueAndRule(t *testing.T) {
	lim := limit(t, "1/s", 1)
	route := func(context.Context, *asynq.Task) sluice.Limiter { return nil }
	for _, c := range []struct {
		cfg  queue.Config
		says string
	}{
		{queue.Config{}, "queue: Config.Limiter <nil>: required where Config.Route is nil too: invalid"},
		{queue.Config{Limiter: lim, Route: route}, "queue: Config.Limiter *waiter.Limiter: must be nil where Config.Route is set: exactly one of them: invalid"},
		{queue.Config{Limiter: (*waiter.Limiter)(nil)}, "queue: Config.Limiter (*waiter.Limiter)(nil): must not be a nil pointer: invalid"},
		{queue.Config{Limiter: lim, MaxWait: -time.Second}, "queue: Config.MaxWait -1s: must not be negative: invalid"},
		{queue.Config{Limiter: lim, Redis: (*asynq.RedisClientOpt)(nil)}, "queue: Config.Redis (*asynq.RedisClientOpt)(nil): must not be a nil pointer: invalid"},
		{queue.Config{Limiter: lim, Redis: oddRedis{}}, "queue: Config.Redis queue_test.oddRedis: must make a redis.UniversalClient, as asynq's own options do: invalid"},
	} {
		g, err := queue.NewGate(c.cfg)
		require.Nil(t, g)
		require.EqualError(t, err, c.says)
		require.ErrorIs(t, err, sluice.ErrInvalid)
	}
}

type oddRedis struct{}

func (oddRedis) MakeRedisClient() any { return "no client" }

func TestNilAndZeroGateLetNothingThrough(t *testing.T) {
	for _, g := range []*queue.Gate{nil, {}} {
		h := g.Middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			require.Fail(t, "started")
			return nil
		}))
		require.ErrorIs(t, h.ProcessTask(t.Context(), asynq.NewTask("t:a", nil)), sluice.ErrInvalid)
		require.Equal(t, asynq.Config{Concurrency: 3}, g.Configure(asynq.Config{Concurrency: 3}))
		require.Zero(t, g.Stats())
		g.Drain()
	}
	g := gate(t, queue.Config{Limiter: limit(t, "1/s", 1)})
	require.ErrorIs(t, g.Middleware(nil).ProcessTask(t.Context(), asynq.NewTask("t:a", nil)), sluice.ErrInvalid)
}

func TestConfigureKeepsShorterIntervals(t *testing.T) {
	g := gate(t, queue.Config{Limiter: limit(t, "1000/s", 1)})
	for _, c := range []struct{ check, tick, wantCheck, wantTick time.Duration }{
		{0, 0, 50 * ms, time.Second},
		{-1, -1, 50 * ms, time.Second},
		{10 * ms, 200 * ms, 10 * ms, 200 * ms},
		{time.Second, 5 * time.Second, 50 * ms, time.Second},
	} {
		cfg := g.Configure(asynq.Config{TaskCheckInterval: c.check, DelayedTaskCheckInterval: c.tick})
		require.Equal(t, c.wantCheck, cfg.TaskCheckInterval)
		require.Equal(t, c.wantTick, cfg.DelayedTaskCheckInterval)
	}
	slow := gate(t, queue.Config{Limiter: limit(t, "10/s", 1)})
	require.Equal(t, 100*ms, slow.Configure(asynq.Config{Concurrency: 8}).TaskCheckInterval, "an eighth of what the slots hold")
	require.Equal(t, 200*ms, slow.Configure(asynq.Config{Concurrency: 100}).TaskCheckInterval)
	require.Equal(t, 20*ms, slow.Configure(asynq.Config{TaskCheckInterval: 20 * ms}).TaskCheckInterval)
	cfg := g.Configure(g.Configure(asynq.Config{Concurrency: 7, StrictPriority: true}))
	require.Equal(t, 7, cfg.Concurrency)
	require.True(t, cfg.StrictPriority)
	require.False(t, cfg.IsFailure(queue.Defer(0)))
	require.False(t, cfg.IsFailure(nil))
	require.True(t, cfg.IsFailure(context.Canceled))
	cfg.ErrorHandler.HandleError(t.Context(), asynq.NewTask("t:a", nil), context.Canceled)
}

// served is a ctx as one of g's servers gives it to its tasks, and the Config that went through the Gate.
func served(ctx context.Context, g *queue.Gate, cfg asynq.Config) (context.Context, asynq.Config) {
	cfg.BaseContext = func() context.Context { return ctx }
	cfg = g.Configure(cfg)
	return cfg.BaseContext(), cfg
}

// process calls the Gate as asynq would, but for what only asynq can put into ctx: see served.
func process(ctx context.Context, g *queue.Gate, h asynq.HandlerFunc) error {
	if h == nil {
		h = func(context.Context, *asynq.Task) error { return nil }
	}
	return g.Middleware(h).ProcessTask(ctx, asynq.NewTask("t:a", nil))
}

func TestWaitsInPlaceUpToMaxWaitElseDefers(t *testing.T) {
	for _, c := range []struct {
		maxWait  time.Duration
		deadline time.Duration // from the start; 0: none
		start    time.Duration // when it starts; < 0: deferred
		at       time.Duration // when that was decided
	}{
		{0, 0, 3 * time.Second, 0},                       // as long as it takes
		{5 * time.Second, 0, 3 * time.Second, 0},         // near enough
		{3 * time.Second, 0, 3 * time.Second, 0},         // exactly
		{3*time.Second - 1, 0, -1, 0},                    // too far: at once, not after MaxWait
		{0, 6 * time.Second, 3 * time.Second, 0},         // half of what is left
		{0, 6*time.Second - 2, -1, 0},                    // more than half
		{0, 2*time.Second + 500*ms, -1, 0},               // after its deadline
		{5 * time.Second, 2*time.Second + 500*ms, -1, 0}, //
	} {
		synctest.Test(t, func(t *testing.T) {
			lim := limit(t, "1/3s", 1)
			require.NoError(t, lim.Wait(t.Context(), 1))
			g := gate(t, queue.Config{Limiter: lim, MaxWait: c.maxWait})
			ctx, _ := served(t.Context(), g, asynq.Config{})
			if c.deadline > 0 {
				// A Timeout: a whole second would look like a Deadline.
				time.Sleep(1 * time.Nanosecond)
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.deadline-1)
				defer cancel()
			}
			begun, started := time.Now(), time.Duration(-1)
			err := process(ctx, g, func(context.Context, *asynq.Task) error { started = time.Since(begun); return nil })
			if c.start < 0 {
				require.True(t, queue.IsDeferred(err), "%+v: %v", c, err)
				require.Zero(t, time.Since(begun), "decided at once")
				require.Equal(t, 0, lim.Stats().Waiting)
				require.EqualValues(t, 1, g.Stats().Deferred)
				return
			}
			require.NoError(t, err, "%+v", c)
			require.InDelta(t, c.start, started, 1)
			require.Equal(t, queue.Stats{Started: 1, Waited: started}, g.Stats())
		})
	}
}

// Whole seconds cut down bring a task back up to a second early; each return has its own place in the queue, or all come
// for the same turn.
func TestReturnTimesAreRoundedUpAndGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "2/s", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		g := gate(t, queue.Config{Limiter: lim, MaxWait: ms})
		ctx, cfg := served(t.Context(), g, asynq.Config{})
		time.Sleep(100 * ms)
		for i := range 20 {
			err := process(ctx, g, nil)
			require.True(t, queue.IsDeferred(err))
			slot := time.Now().Add(400*ms + time.Duration(i)*500*ms)
			back := time.Unix(time.Now().Add(cfg.RetryDelayFunc(0, err, nil)).Unix(), 0) // as asynq keeps it
			require.False(t, back.Before(slot), "%d: %v before %v", i, back, slot)
			require.Less(t, back.Sub(slot), time.Second)
		}
	})
}

func TestServerThatWasNotConfiguredWaitsAndIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		lim := limit(t, "1/s", 1)
		g := gate(t, queue.Config{Limiter: lim, MaxWait: ms, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		g.Configure(asynq.Config{}) // another server was
		begun := time.Now()
		for range 4 {
			require.NoError(t, process(t.Context(), g, nil))
		}
		require.Equal(t, 3*time.Second, time.Since(begun))
		require.Equal(t, 1, strings.Count(log.String(), "Gate.Configure"), log.String())
		require.Zero(t, g.Stats().Deferred)
	})
}

// Without Configure a handler's own Defer cannot go to Asynq either: the task stays in its slot, and the log says why.
func TestDeferOnAServerThatWasNotConfiguredIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := gate(t, queue.Config{Limiter: limit(t, "1/s", 9), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		calls, begun := 0, time.Now()
		require.NoError(t, process(t.Context(), g, func(context.Context, *asynq.Task) error {
			if calls++; calls == 1 {
				return queue.Defer(5 * time.Second)
			}
			return nil
		}))
		require.Equal(t, 5*time.Second, time.Since(begun))
		require.Equal(t, 1, strings.Count(log.String(), "Gate.Configure"), log.String())
	})
}

func TestCanceledTaskGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "1/10s", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		g := gate(t, queue.Config{Limiter: lim})
		ctx, _ := served(t.Context(), g, asynq.Config{})
		leaves, cancel := context.WithCancel(ctx)
		first, second := make(chan error, 1), make(chan error, 1)
		begun := time.Now()
		go func() { first <- process(leaves, g, nil) }()
		synctest.Wait()
		go func() { second <- process(ctx, g, nil) }()
		synctest.Wait()
		require.Equal(t, 2, g.Stats().Waiting)
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		require.NoError(t, <-second)
		require.Equal(t, 10*time.Second, time.Since(begun), "moved up")
		require.Zero(t, g.Stats().Waiting)
	})
}

func TestDrainThenConfigureWorksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "1/10s", 1)
		require.NoError(t, lim.Wait(t.Context(), 1))
		g := gate(t, queue.Config{Limiter: lim})
		ctx, cfg := served(t.Context(), g, asynq.Config{})
		res := make(chan error, 1)
		go func() { res <- process(ctx, g, nil) }()
		synctest.Wait()
		g.Drain()
		g.Drain()
		err := <-res
		require.True(t, queue.IsDeferred(err))
		require.Zero(t, cfg.RetryDelayFunc(0, err, nil), "due at once")
		require.Zero(t, lim.Stats().Waiting)
		require.True(t, queue.IsDeferred(process(ctx, g, nil)), "comes after Drain")
		ctx, _ = served(t.Context(), g, asynq.Config{})
		require.NoError(t, process(ctx, g, nil))
	})
}

type uncomparable struct {
	sluice.Limiter
	_ []int
}

// A Route that returns something that cannot be a map key must not panic; it is obeyed all the same.
func TestRouteReturnsSomethingUncomparable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "1/s", 1)
		g := gate(t, queue.Config{Route: func(context.Context, *asynq.Task) sluice.Limiter { return uncomparable{Limiter: lim} }})
		ctx, _ := served(t.Context(), g, asynq.Config{})
		begun := time.Now()
		for range 3 {
			require.NoError(t, process(ctx, g, nil))
		}
		require.Equal(t, 2*time.Second, time.Since(begun))
	})
}

func TestRouteReturnsNilPointerIsNotLimited(t *testing.T) {
	limits := map[string]*waiter.Limiter{}
	g := gate(t, queue.Config{Route: func(_ context.Context, task *asynq.Task) sluice.Limiter { return limits[task.Type()] }})
	ctx, _ := served(t.Context(), g, asynq.Config{})
	require.NoError(t, process(ctx, g, nil))
	require.EqualValues(t, 1, g.Stats().Started)
}

func TestCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, cost := limit(t, "1/s", 5), 5
		g := gate(t, queue.Config{Limiter: lim, Cost: func(context.Context, *asynq.Task) int { return cost }})
		ctx, cfg := served(t.Context(), g, asynq.Config{})
		begun := time.Now()
		require.NoError(t, process(ctx, g, nil))
		require.NoError(t, process(ctx, g, nil))
		require.Equal(t, 5*time.Second, time.Since(begun))
		cost = 0
		require.NoError(t, process(ctx, g, nil))
		require.Equal(t, 5*time.Second, time.Since(begun), "costs nothing")
		for _, cost = range []int{-1, 6} {
			err := process(ctx, g, nil)
			require.False(t, queue.IsDeferred(err))
			require.True(t, cfg.IsFailure(err))
		}
	})
}

func TestPanicsOfUserFunctionsLeaveNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := limit(t, "1/s", 1)
		what := ""
		boom := func(where string) {
			if what == where {
				panic(where)
			}
		}
		g := gate(t, queue.Config{
			Route:   func(context.Context, *asynq.Task) sluice.Limiter { boom("Route"); return lim },
			Cost:    func(context.Context, *asynq.Task) int { boom("Cost"); return 1 },
			OnDefer: func(context.Context, queue.Deferral) { boom("OnDefer") },
			MaxWait: 5 * time.Second,
		})
		ctx, _ := served(t.Context(), g, asynq.Config{})
		for _, what = range []string{"Route", "Cost", "handler"} {
			require.Panics(t, func() {
				_ = process(ctx, g, func(context.Context, *asynq.Task) error { boom("handler"); return nil })
			}, what)
		}
		what = "OnDefer"
		require.True(t, queue.IsDeferred(process(ctx, g, func(context.Context, *asynq.Task) error {
			return queue.Defer(time.Second)
		})), "OnDefer's panic is not the task's failure")
		require.NoError(t, process(ctx, g, nil))
		require.Zero(t, g.Stats().Waiting)
	})
}

func TestDeferKnowsItsOwn(t *testing.T) {
	require.False(t, queue.IsDeferred(nil))
	require.False(t, queue.IsDeferred(context.Canceled))
	require.True(t, queue.IsDeferred(queue.Defer(-time.Hour)))
	require.True(t, queue.IsDeferred(queue.Backoff(sluice.Never)))
	require.EqualError(t, queue.Defer(-1), "queue: deferred for 0s")
}
