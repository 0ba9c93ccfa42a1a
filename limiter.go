package sluice

import (
	"context"
	"errors"
	"time"
)

// A Waiter blocks until n units may go. It is the smallest thing most callers need.
type Waiter interface {
	Wait(ctx context.Context, n int) error
}

// A Limiter is the whole contract. waiter.Limiter, leaky.Pacer, a key's view of keyed.Map and cluster.Limiter keep it,
// and so does what All returns of them.
//
// Any number of goroutines may share one Limiter. n == 0 costs nothing and returns at once. n < 0 and a nil ctx are
// ErrInvalid. A ctx that is done already is ctx's own error. On any error nothing was taken.
type Limiter interface {
	// Wait returns nil exactly when n units were taken.
	//
	// What can be granted now is granted without blocking. What cannot be granted by ctx's deadline is refused at
	// once: a *Refusal whose RetryAfter is the wait that it would have needed. Otherwise the caller joins a line:
	// first come, first served. If ctx ends while it stands there, Wait returns ctx's error, everything it held goes
	// back, and all behind it move up at once. A grant that came before ctx ended stands, and one that is due
	// exactly at the deadline is made.
	Wait(ctx context.Context, n int) error

	// Try takes n units if they can be had now, and never blocks. It never overtakes those in line, and a refused
	// Try changes nothing. Refused, it returns a Decision that is not Allowed and a nil error; the error is for what
	// no waiting in this line helps: ErrTooLarge, ErrClosed, ErrInvalid, a done ctx, or what has kept the Limiter from
	// deciding, such as an outage of what it lives in.
	Try(ctx context.Context, n int) (Decision, error)

	// Reserve takes a place in the line that Wait uses, without blocking. ctx governs the call only.
	Reserve(ctx context.Context, n int) (Reservation, error)

	// Pause lets nothing go before now+d. Who is in line stays there, what gathers goes on gathering up to the
	// burst, and a shorter Pause never shortens a longer one. Pause(ctx, 0) does nothing; d < 0 is ErrInvalid.
	Pause(ctx context.Context, d time.Duration) error

	// Stats returns a snapshot.
	Stats() Stats
}

// A Reservation is a place in a Limiter's line. Any number of goroutines may use it.
type Reservation interface {
	// Delay returns how long until the turn comes, as it stands now: it shrinks when others give up. It is 0 once
	// the turn has come, and Never after Cancel or when the Limiter was closed first.
	Delay() time.Duration

	// Wait sleeps until the turn comes. It gives the place up, as Cancel does, if ctx ends first or if the turn would
	// come after ctx's deadline (which it says at once, as a Limiter's Wait does).
	Wait(ctx context.Context) error

	// Cancel gives the place back, once; again is a no-op. Before the turn that is everything. After it, Cancel is the
	// caller's word that the work did not start, and gives back as much of n as has not been made up by the
	// bucket's filling in the meantime, so that the limit is kept whatever is cancelled.
	Cancel()
}

// A TryReserver is a Limiter whose Try can be taken back: as Try, and when the Decision is Allowed also with a
// Reservation that is worth only its Cancel. All needs it to ask several limits and keep all of them or none.
type TryReserver interface {
	Limiter
	TryReserve(ctx context.Context, n int) (Reservation, Decision, error)
}

// TryReserve is l's TryReserve, or made of its Reserve and Cancel if l has none: what builds on any Limiter need not ask
// which. A Limiter without one counts a refused Try as a call that was cancelled.
func TryReserve(ctx context.Context, l Limiter, n int) (Reservation, Decision, error) {
	if t, ok := l.(TryReserver); ok {
		return t.TryReserve(ctx, n)
	}
	r, err := l.Reserve(ctx, n)
	var no *Refusal
	if errors.As(err, &no) && no.RetryAfter != Never {
		return nil, Decision{RetryAfter: no.RetryAfter}, nil
	}
	if err != nil {
		return nil, Decision{}, err
	}
	wait := r.Delay()
	if wait > 0 {
		r.Cancel()
	}
	d, err := l.Try(ctx, 0)
	if err != nil {
		r.Cancel()
		return nil, Decision{}, err
	}
	if d.Allowed, d.RetryAfter = wait == 0, wait; !d.Allowed {
		r = nil
	}
	return r, d, nil
}

// A Decision is the answer to Try.
type Decision struct {
	// Allowed says whether the units were taken.
	Allowed bool
	// Delay, when Allowed, is how long to hold the work before it starts: 0 for a token bucket, its turn for a leaky
	// bucket. It stays true whatever happens later.
	Delay time.Duration
	// RetryAfter, when not Allowed, is the least wait after which the same call is allowed if nobody else comes,
	// rounded up; Never if none is.
	RetryAfter time.Duration
	// ResetAfter is how long until the limiter is at rest: a token bucket full, a leaky bucket drained, nobody in line
	// and no pause.
	ResetAfter time.Duration
	// Remaining is how many whole units could be taken right now, after this decision.
	Remaining int
}

// Stats is a snapshot of a Limiter. The counters only grow, but for Units, which is net of what was given back.
type Stats struct {
	Rate      Rate
	Burst     int           // or a leaky bucket's Capacity
	Available int           // whole units that could be taken now; 0 while somebody is in line or a pause holds
	Waiting   int           // callers in line, and Reservations that Reserve made and whose turn has not come
	Granted   uint64        // calls granted
	Refused   uint64        // calls refused
	Canceled  uint64        // calls that left the line because their ctx ended, and Reservations cancelled before their turn
	Units     uint64        // units granted, less what was given back
	Waited    time.Duration // summed over granted calls
}
