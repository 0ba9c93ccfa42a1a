package queue

import (
	"errors"
	"time"

	"github.com/fadf4e53/sluice"
)

// The numbers behind the decisions. They are measured, not tuned to a machine: facts of Asynq's clockwork.
const (
	// margin is what must be left of a task's time when the decision falls. Asynq ignores what a handler returns
	// after its ctx ended, and then counts a failure; 5 ms sufficed on an idle machine.
	margin = 50 * time.Millisecond

	// lead is how long before its turn a deferred task is called back: an idle Asynq worker sleeps up to 75 ms
	// (one and a half TaskCheckIntervals) before it looks.
	lead = 150 * time.Millisecond

	// tailLead is the same for a task that is called to the tail of its queue because the share of the slots that called
	// tasks may hold is taken: late enough that it hardly waits in its slot.
	tailLead = 100 * time.Millisecond

	// glance is how long a task may look for a turn that is not its own. Not 0: a done ctx would take nothing.
	glance = 5 * time.Millisecond

	// mixedWait is the longest wait in place where other work wants the slots too. It bounds how long a slot is
	// held, and it is the forwarder's tick, below which a deferral would come back too late.
	mixedWait = time.Second

	// guestWait is the same for a task that was called by another process: several that call for one limit do not know
	// how many the others have called.
	guestWait = 3 * time.Second

	// fallback is added to the return time of a task that will be called back: Asynq's forwarder is to bring it only if
	// this process died.
	fallback = 2 * time.Second

	// unknownWait is how long a task stays away when its limiter could not say.
	unknownWait = time.Second
)

// A stance is what decides how long one task may wait in place.
type stance struct {
	left    time.Duration // until its ctx ends; Never: it does not
	maxWait time.Duration // Config.MaxWait
	mixed   bool          // other work wants the slots, and deferring is exact
	queued  bool          // tasks that were deferred before it are still out, and will be called back
	crowded bool          // the share of the server's slots that may wait does so already
	called  bool          // it was called back: its time has come
	guest   bool          // by another process, which does not know how many wait here
	full    bool          // and more do than guests may add to
}

// patience is how long a task may wait in a worker slot before it is handed back.
func (s stance) patience() time.Duration {
	p := half(s.left)
	if s.maxWait > 0 {
		p = min(p, s.maxWait)
	} else if s.mixed && s.guest {
		p = min(p, guestWait)
	} else if s.mixed {
		p = min(p, mixedWait)
	}
	bounded := s.mixed || s.maxWait > 0
	if s.guest && s.full || !s.called && (s.mixed && s.crowded || bounded && s.queued) {
		p = min(p, glance)
	}
	return max(p, 0)
}

// half leaves a task at least half of its time, and never less than the margin.
func half(left time.Duration) time.Duration { return max(0, min(left/2, left-margin)) }

// secondUp rounds up to the whole seconds in which Asynq thinks.
func secondUp(t time.Time) time.Time {
	s := t.Truncate(time.Second) // without a monotonic reading: Asynq's seconds are the wall clock's
	if s.Before(t) {
		s = s.Add(time.Second)
	}
	return s
}

// hopeless says whether no waiting helps, so that the task must fail.
func hopeless(err error) bool {
	return errors.Is(err, sluice.ErrTooLarge) || errors.Is(err, sluice.ErrInvalid)
}

// wanted is the wait that a refused task would have needed.
func wanted(err error) time.Duration {
	var r *sluice.Refusal
	if errors.As(err, &r) && r != nil && r.RetryAfter > 0 && r.RetryAfter != sluice.Never {
		return r.RetryAfter
	}
	return unknownWait
}
