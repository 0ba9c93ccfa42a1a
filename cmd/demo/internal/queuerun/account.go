package queuerun

import (
	"fmt"
	"time"
)

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
