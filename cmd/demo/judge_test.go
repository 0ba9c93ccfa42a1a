package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

const ms = time.Millisecond

// every returns n starts, one for each step.
func every(step time.Duration, n int) []time.Duration {
	starts := make([]time.Duration, n)
	for i := range starts {
		starts[i] = time.Duration(i) * step
	}
	return starts
}

func TestJudge(t *testing.T) {
	l := limit{sluice.PerSecond(50), 1}
	exact := every(20*ms, 100)
	crowd := slices.Sorted(slices.Values(append([]time.Duration{1010 * ms}, exact...)))

	for _, s := range []struct {
		name   string
		starts []time.Duration
		late   time.Duration
		want   verdict
	}{
		{"nothing", nil, 0, held},
		{"51 allowed: both ends of the second", exact, 0, held},
		{"51 steps in a little more than a second", every(time.Second/51+1, 52), 0, held},
		{"51 steps in a second: 52 broken", every(time.Second/51, 52), 0, broken},
		{"one in between: 52 broken", crowd, 0, broken},
		{"52 broken, and 19 ms do not explain it", crowd, 20*ms - 1, broken},
		{"52 explained by 20 ms", crowd, 20 * ms, delay},
		{"a burst of 52", make([]time.Duration, 52), 0, broken},
	} {
		require.Equal(t, s.want, l.judge(s.starts, s.late), s.name)
	}
}

func TestAllowed(t *testing.T) {
	for _, s := range []struct {
		limit limit
		want  int
	}{
		{limit{sluice.PerSecond(50), 1}, 51},
		{limit{sluice.PerSecond(50), 10}, 60},
		{limit{sluice.Per(3, time.Minute), 2}, 2},
		{limit{sluice.Per(7, 2*time.Second), 1}, 4},
		{limit{sluice.Unlimited, 10}, math.MaxInt},
	} {
		require.Equal(t, s.want, s.limit.allowed(0), "%v, burst %d", s.limit.rate, s.limit.burst)
	}
}

func TestPeakAgainstBruteForce(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		starts := make([]time.Duration, rnd.IntN(60))
		for i := range starts {
			// Few distinct instants, so that starts coincide and windows end exactly on one.
			starts[i] = time.Duration(rnd.IntN(30)) * 100 * ms
		}
		slices.Sort(starts)
		want := 0
		for _, from := range starts {
			n := 0
			for _, at := range starts {
				if from <= at && at <= from+window {
					n++
				}
			}
			want = max(want, n)
		}
		require.Equal(t, want, peak(starts), "%v", starts)
	}
}

func TestProblems(t *testing.T) {
	fine := account{kind: limited, enqueued: 51, done: 51, deferred: 40, starts: every(20*ms, 51)}
	for _, s := range []struct {
		name   string
		change func(*report, *account)
		want   string // "": none
	}{
		{"fine", func(*report, *account) {}, ""},
		{"left after an interrupt", func(r *report, a *account) { a.done, a.left, r.interrupted = 40, 11, true }, ""},
		{"lost", func(_ *report, a *account) { a.done, a.lost = 50, 1 }, "limited jobs: 1 lost"},
		{"archived", func(_ *report, a *account) { a.done, a.archived = 50, 1 }, "limited jobs: 1 archived"},
		{"failed", func(_ *report, a *account) { a.failed = 2 }, "limited jobs: 2 failed"},
		{"twice", func(_ *report, a *account) { a.repeated = 3 }, "limited jobs: 3 started twice"},
		{"broken", func(_ *report, a *account) { a.starts = make([]time.Duration, 52) }, "the limit was broken: 52 starts within 1s, allowed are 51"},
		{"a free one has no limit", func(_ *report, a *account) { a.kind, a.starts = free, make([]time.Duration, 52) }, ""},
		{"counted", func(r *report, _ *account) { r.counted = 1 }, "Asynq counted 1 failures where handlers had 0"},
	} {
		a := fine
		r := &report{limit: limit{sluice.PerSecond(50), 1}}
		s.change(r, &a)
		r.accounts = []account{a}
		found := r.problems()
		if s.want == "" {
			require.Empty(t, found, s.name)
			continue
		}
		require.Len(t, found, 1, s.name)
		require.Contains(t, found[0], s.want, s.name)
	}
}

func TestAccounts(t *testing.T) {
	l := newLedger()
	for range 7 {
		l.enqueued(limited)
	}
	start := func(id string, after time.Duration) { l.started(limited, id, l.opened.Add(after)) }
	start("limited-0", 30*ms)
	start("limited-1", 10*ms)
	start("limited-1", 20*ms)
	for _, id := range []string{"limited-0", "limited-1"} {
		l.done(limited, id)
	}
	a := l.accounts(map[string]asynq.TaskState{
		"limited-2": asynq.TaskStatePending,
		"limited-3": asynq.TaskStateRetry,
		"limited-4": asynq.TaskStateScheduled,
		"limited-5": asynq.TaskStateArchived,
	})[0]
	require.Equal(t, account{
		kind: limited, enqueued: 7, done: 2, archived: 1, left: 3, lost: 1, repeated: 1,
		starts: []time.Duration{10 * ms, 20 * ms, 30 * ms},
	}, a)

	a = l.accounts(map[string]asynq.TaskState{"limited-0": asynq.TaskStateRetry})[0]
	require.Equal(t, 2, a.repeated, "done and in the queue all the same")
	require.Equal(t, 5, a.lost)
}
