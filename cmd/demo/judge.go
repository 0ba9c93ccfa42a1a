package main

import (
	"fmt"
	"math"
	"time"

	"github.com/fadf4e53/sluice"
)

// window is what a rate per second is measured over.
const window = time.Second

// An account is what became of the jobs of one kind.
type account struct {
	kind     string
	enqueued int
	done     int
	deferred int // hand-backs, not jobs
	failed   int // a handler's errors, deferrals not among them
	archived int // given up by Asynq
	left     int // still in the queue: pending, active, scheduled, retry
	lost     int // enqueued, but neither done nor anywhere in the queue
	repeated int // started twice, or done and in the queue all the same
	starts   []time.Duration
}

// took is how long it was until the last start.
func (a account) took() time.Duration {
	if len(a.starts) == 0 {
		return 0
	}
	return a.starts[len(a.starts)-1]
}

// problems says, in the words of the report, what must not have happened to these jobs.
func (a account) problems() []string {
	var found []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{a.lost, "lost: not done, and nowhere in the queue"},
		{a.archived, "archived: given up for good"},
		{a.failed, "failed: a handler returned an error that is no deferral"},
		{a.repeated, "started twice, or done and still in the queue"},
	} {
		if p.n > 0 {
			found = append(found, fmt.Sprintf("%s jobs: %d %s", a.kind, p.n, p.what))
		}
	}
	return found
}

// A limit is what the starts of one kind are held against.
type limit struct {
	rate  sluice.Rate
	burst int
}

// allowed is the most starts in any window: burst + rate. A start that may have been held up by late counts for when it
// was due: the window then reaches back that far.
func (l limit) allowed(late time.Duration) int {
	n := l.rate.UnitsIn(window + late)
	if n > math.MaxInt64-int64(l.burst) {
		return math.MaxInt
	}
	return l.burst + int(n)
}

// ideal is the least time in which n jobs can all have started: the burst goes at once.
func (l limit) ideal(n int) time.Duration { return l.rate.TimeFor(int64(n - l.burst)) }

// A verdict is what the starts say about their limit.
type verdict int

const (
	held   verdict = iota
	delay          // more than allowed, but no more than a machine explains that held starts up
	broken         // more than that
)

func (l limit) judge(starts []time.Duration, late time.Duration) verdict {
	switch most := peak(starts); {
	case most <= l.allowed(0):
		return held
	case most <= l.allowed(late):
		return delay
	}
	return broken
}

// peak returns the most starts in any window, both ends included, wherever it lies: not in each full second, for which
// twice the limit across a boundary would look right. starts are in order.
func peak(starts []time.Duration) int {
	most, first := 0, 0
	for i, at := range starts {
		for at-starts[first] > window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
