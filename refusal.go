package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The reasons for which work is turned away. errors.Is finds them in what Wait, Try and Reserve return.
var (
	ErrDeadline = errors.New("not due before the context's deadline")
	ErrMaxWait  = errors.New("longer than the limiter's MaxWait")
	ErrFull     = errors.New("no room")
	ErrTooLarge = errors.New("more than can ever be granted at once")
	ErrClosed   = errors.New("limiter closed")

	// ErrInvalid is not a refusal but a mistake: a bad Config, a negative n, a nil context. The error that carries
	// it names the field, the value and the rule.
	ErrInvalid = errors.New("invalid")
)

// A Refusal says that work was turned away unharmed: nothing was taken and nothing was queued. It is the only type
// with which a Limiter says no; errors.Is(err, ErrFull) finds its Reason, and a Refusal for ErrDeadline matches
// context.DeadlineExceeded too.
type Refusal struct {
	// Reason is ErrDeadline, ErrMaxWait, ErrFull, ErrTooLarge or ErrClosed, or one that a Limiter adds.
	Reason error
	// N is the number of units that was asked for.
	N int
	// RetryAfter tells when to come back. For ErrDeadline and ErrMaxWait it is the wait that was needed: a call that
	// may wait as long succeeds now, and one that may not wait at all succeeds then, if nobody else comes. For ErrFull
	// it is the wait until there is room. Never if no waiting helps.
	RetryAfter time.Duration
	// Rate and Burst (a leaky bucket's Capacity) tell which limit refused, where several were asked.
	Rate  Rate
	Burst int
}

func (r *Refusal) Error() string {
	if r == nil {
		return "sluice: <nil> refusal"
	}
	s := fmt.Sprintf("sluice: %d refused", r.N)
	if r.Rate.Valid() { // else nobody got as far as a limit
		s += fmt.Sprintf(" by %s, burst %d", r.Rate, r.Burst)
	}
	s += fmt.Sprintf(": %v", r.Reason)
	if r.RetryAfter != Never {
		s += fmt.Sprintf("; retry after %v", r.RetryAfter)
	}
	return s + "; nothing was taken"
}

// Unwrap lets errors.Is find the Reason.
func (r *Refusal) Unwrap() []error {
	switch {
	case r == nil || r.Reason == nil:
		return nil
	case errors.Is(r.Reason, ErrDeadline):
		return []error{r.Reason, context.DeadlineExceeded}
	}
	return []error{r.Reason}
}
