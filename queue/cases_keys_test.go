package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/queue"
)

// byKey gives each type of tasks a limit of its own.
func byKey(t testing.TB, rate string, burst int) func(context.Context, *asynq.Task) sluice.Limiter {
	t.Helper()
	limits, err := keyed.New(keyed.Config[string]{MaxKeys: 100, New: func(string) (sluice.Limiter, error) {
		return limit(t, rate, burst), nil
	}})
	require.NoError(t, err)
	return func(_ context.Context, task *asynq.Task) sluice.Limiter { return limits.For(task.Type()) }
}

// Ten groups of one job in ten seconds each ran one job in ten seconds, all together.
func TestALimitOfEachGroupWasOneForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, slots: 10, gate: gate(t, queue.Config{Route: byKey(t, "1/10s", 1), MaxWait: ms})}
		var all []*asynq.Task
		for group := range 10 {
			all = append(all, tasksOf(fmt.Sprintf("t:%d", group), 5)...) // one group after the other
		}
		b.run(all...)
		for i := range 5 {
			require.Equal(t, 10*(i+1), b.by(time.Duration(i)*10*time.Second), "after %d0 s", i)
		}
		for group := range 10 {
			b.law(fmt.Sprintf("t:%d", group), 0, 1, 10*time.Second)
		}
	})
}

// Jobs without a key ate the budget of those with one, and one tenant's that of another.
func TestAnotherKeysJobsAteTheBudget(t *testing.T) {
	for _, c := range []struct {
		rate  string
		burst int
		jobs  map[string]int
		full  string
		next  time.Duration
	}{
		{"5/10s", 5, map[string]int{"": 5, "1": 5}, "1", 2 * time.Second},
		{"2/min", 2, map[string]int{"a": 2, "b": 1}, "a", 30 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &bench{t: t, slots: 1, gate: gate(t, queue.Config{Route: byKey(t, c.rate, c.burst)})}
			var all []*asynq.Task
			for key, n := range c.jobs {
				all = append(all, tasksOf(key, n)...)
			}
			b.run(all...)
			require.Zero(t, b.last(), "each has its own")
			b.run(tasksOf(c.full, 1)...)
			require.Equal(t, c.next, b.last(), "and no more")
		})
	}
}

// Of several limits on one job the second was skipped, or charged for what the first refused.
func TestOfFourLimitsOnlyOneHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		second, minute, hour, day := limit(t, "3/s", 3), limit(t, "100/min", 100), limit(t, "300/h", 300), limit(t, "2000/24h", 2000)
		g := gate(t, queue.Config{Limiter: sluice.All(second, minute, hour, day)})
		b := &bench{t: t, gate: g, slots: 10}
		b.run(tasksOf("t:a", 3000)...)
		for _, c := range []struct {
			at     time.Duration
			starts int
		}{
			{0, 3},
			{time.Second, 6},
			{time.Minute, 183}, // 3/s decides
			{time.Hour, 600},   // 300/h
			{7 * time.Hour, 2400},
			{12 * time.Hour, 3000}, // 2000/day
		} {
			require.Equal(t, c.starts, b.by(c.at), "after %v", c.at)
		}
		require.Equal(t, 12*time.Hour, b.last())
		b.law("", 3, 3, time.Second)
		b.law("", 100, 100, time.Minute)
		b.law("", 300, 300, time.Hour)
		b.law("", 2000, 2000, 24*time.Hour)

		time.Sleep(time.Second)
		short := gate(t, queue.Config{Limiter: sluice.All(second, minute, hour, day), MaxWait: ms})
		ctx, _ := served(t.Context(), short, asynq.Config{})
		for range 100 {
			require.True(t, queue.IsDeferred(process(ctx, short, nil)), "the day's is used up")
		}
		require.Equal(t, 3, second.Stats().Available, "a refusal took it from the others")
		require.EqualValues(t, 3000, second.Stats().Units)
		require.EqualValues(t, 3000, hour.Stats().Units)
	})
}

// One at a time and 12 a minute: the rate was skipped where the slots were bounded.
func TestARateWasSkippedBesideASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, slots: 1, gate: gate(t, queue.Config{Limiter: limit(t, "12/min", 1)})}
		b.handle = func(_ context.Context, task *asynq.Task) error {
			if string(task.Payload()) == "3" {
				time.Sleep(20 * time.Second)
			}
			return nil
		}
		b.run(tasksOf("t:a", 8)...)
		want := []time.Duration{0, 5, 10, 15, 35, 40, 45, 50}
		for i, after := range b.after {
			require.Equal(t, want[i]*time.Second, after)
		}
	})
}

// users returns a limit of 10/s for each of twelve, joined with others, and some tasks of each.
func users(t *testing.T, each int, others ...sluice.Limiter) (map[string]sluice.Limiter, []*asynq.Task) {
	limits := map[string]sluice.Limiter{}
	var tasks []*asynq.Task
	for user := range 12 {
		limits[fmt.Sprintf("t:%d", user)] = sluice.All(append(others, limit(t, "10/s", 1))...)
	}
	for i := range each * len(limits) {
		tasks = append(tasks, asynq.NewTask(fmt.Sprintf("t:%d", i%12), fmt.Append(nil, i)))
	}
	return limits, tasks
}

// A user's limit could not stand beside the project's.
func TestAUsersLimitCouldNotStandBesideTheProjects(t *testing.T) {
	t.Run("All", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limits, tasks := users(t, 100, limit(t, "100/s", 1))
			b := &bench{t: t, slots: 20, gate: gate(t, queue.Config{Route: byType(limits)})}
			b.run(tasks...)
			require.Len(t, b.starts, len(tasks))
			// As many more as kept a turn while they waited for the other limit: no more than there are slots.
			b.law("", 100+b.slots, 1, time.Second)
			for kind := range limits {
				b.law(kind, 10+b.slots, 1, time.Second)
			}
		})
	})
	t.Run("one Gate in the other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			limits, tasks := users(t, 100)
			b := &bench{
				t: t, slots: 20,
				gate:  gate(t, queue.Config{Route: byType(limits)}),
				inner: gate(t, queue.Config{Limiter: limit(t, "100/s", 1)}),
			}
			b.run(tasks...)
			require.Len(t, b.starts, len(tasks))
			b.law("", 100, 1, time.Second)
			require.Equal(t, 11990*ms, b.last(), "1,200 at 100/s")
		})
	})
}

// Three functions could not share one limit.
func TestFunctionsCouldNotShareALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := limit(t, "300/s", 1)
		route := func(_ context.Context, task *asynq.Task) sluice.Limiter {
			if strings.HasPrefix(task.Type(), "t:") {
				return shared
			}
			return nil
		}
		b := &bench{t: t, slots: 30, gate: gate(t, queue.Config{Route: route})}
		var all []*asynq.Task
		for _, kind := range []string{"t:a", "t:b", "t:c"} {
			all = append(all, tasksOf(kind, 301)...)
		}
		b.run(all...)
		require.InDelta(t, 3006*ms+666666*time.Nanosecond, b.last(), 1000)
		b.law("", 300, 1, time.Second)
	})
}
