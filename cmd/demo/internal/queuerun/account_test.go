package queuerun

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/law"
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
		{"broken", func(_ *report, a *account) { a.starts = make([]time.Duration, 52) }, "the limit was broken: 52 starts within 1s of 0s, allowed are 51"},
		{"a free one has no limit", func(_ *report, a *account) { a.kind, a.starts = free, make([]time.Duration, 52) }, ""},
		{"counted", func(r *report, _ *account) { r.counted = 1 }, "Asynq counted 1 failures where handlers had 0"},
	} {
		a := fine
		r := &report{limit: law.Limit{Rate: sluice.PerSecond(50), Burst: 1}}
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

// Behind a stall that is too long to tell, the demo does not say that the limit held, nor that it was broken.
func TestUnclear(t *testing.T) {
	crowd := append(make([]time.Duration, 2), every(20*ms, 51)...)
	slices.Sort(crowd)
	r := &report{
		limit:    law.Limit{Rate: sluice.PerSecond(50), Burst: 1},
		accounts: []account{{kind: limited, enqueued: 53, done: 53, starts: crowd}},
		stalls:   []law.Stall{{From: 0, To: 300 * ms}},
	}
	var out bytes.Buffer
	r.write(&out)
	require.True(t, r.wrong())
	require.Contains(t, out.String(), "CANNOT SHOW that the limit held: 53 starts within 1s of 0s, allowed are 51; there this machine held the process up for 300ms")
	require.Contains(t, out.String(), "Whether the limit held cannot be shown, and every job was done.")
	require.NotContains(t, out.String(), "WRONG")

	r.stalls[0].To = 150 * ms
	out.Reset()
	r.write(&out)
	require.False(t, r.wrong())
	require.Contains(t, out.String(), "But for the machine's delays the limit held")
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
