package sluice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// All joins limits that must all agree, such as 3/s and 100/min and 2000/day: n units are taken from each or from
// none, and a refusal by one takes nothing from the others.
//
// Wait takes a place in the line of each and returns when the last turn has come. What is refused carries the Rate and
// Burst of the limit that refused; of several, of the one that needs longest. Try is allowed when all allow it: Delay,
// RetryAfter and ResetAfter are then the longest, Remaining is the least. Pause goes to each, also when another of them
// has an error to return.
//
// Each limit keeps its law by its own books, in which the units count from its own turn on. A caller whose turn in one
// has come keeps it while it waits for another: of a limit that stands beside different others, as a project's beside
// those of its users, a window may see as many units more start as were kept so when it began, and nobody else gets
// them meanwhile. A limit that must hold exactly, because it is somebody else's, is waited for alone and last: Wait
// for the others, then Wait for it.
//
// Stats counts the calls to the joined Limiter and shows the slowest rate, the smallest burst, the least available and
// the longest line; its Units are less all that was cancelled, also where a limit could not take all of it back. A
// Reservation is counted as granted when somebody sees that its turn has come, by Delay, Wait or Cancel. The limits'
// own Stats count what they were asked: where one refuses, the others have granted and got back, or been cancelled.
//
// The same limit given twice is charged twice, one after the other: it must have room for both, and what a refused Try
// tells of it is the wait for one. All of nothing is unlimited; All of one is that one. A nil limit makes
// every call ErrInvalid. Any number of goroutines may share the Limiter; it has no state that must be closed. Build it
// once and keep it: the queue's Gate and others know limiters by identity.
func All(limits ...Limiter) Limiter {
	if len(limits) == 1 && limits[0] != nil {
		return limits[0]
	}
	return &all{limits: append([]Limiter(nil), limits...)}
}

type all struct {
	limits []Limiter

	mu    sync.Mutex
	stats Stats // only its counters
}

var _ TryReserver = (*all)(nil)

// check finds what is wrong with a call before any limit is asked.
func (a *all) check(ctx context.Context, call string, n int) error {
	if ctx == nil {
		return fmt.Errorf("sluice: All: %s: ctx is nil: must be a context; nothing was taken: %w", call, ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("sluice: All: %s: n is %d: must be at least 0; nothing was taken: %w", call, n, ErrInvalid)
	}
	for i, l := range a.limits {
		if l == nil {
			return fmt.Errorf("sluice: All: limit %d is nil: must be a Limiter; nothing was taken: %w", i, ErrInvalid)
		}
	}
	return nil
}

func (a *all) Wait(ctx context.Context, n int) error {
	r, err := a.reserve(ctx, "Wait", n)
	if err != nil {
		return err
	}
	return r.Wait(ctx)
}

func (a *all) Reserve(ctx context.Context, n int) (Reservation, error) {
	r, err := a.reserve(ctx, "Reserve", n)
	if err != nil {
		return nil, err
	}
	r.settle() // a turn that has come already is granted, whether or not anybody asks again
	return r, nil
}

func (a *all) reserve(ctx context.Context, call string, n int) (*allReservation, error) {
	if err := a.check(ctx, call, n); err != nil {
		return nil, err
	}
	r := &allReservation{all: a, n: n, since: time.Now()}
	defer r.unlessWhole() // also when a limit panics
	// A refusal does not end the round unless it is final: its RetryAfter is to be true of the limits that follow, too.
	var latest error
	var wait time.Duration
	for _, l := range a.limits {
		part, err := l.Reserve(ctx, n)
		if err == nil {
			r.parts = append(r.parts, part)
			continue
		}
		var no *Refusal
		if !errors.As(err, &no) || no.RetryAfter == Never {
			return nil, a.refused(n, err, 0)
		}
		if latest == nil || no.RetryAfter > wait {
			latest, wait = err, no.RetryAfter
		}
	}
	if latest != nil {
		return nil, a.refused(n, latest, r.longest())
	}
	r.whole = true
	return r, nil
}

// refused counts a no, and makes its RetryAfter tell also what the limits that agreed would have needed.
func (a *all) refused(n int, err error, needed time.Duration) error {
	var r *Refusal
	if n == 0 || !errors.As(err, &r) {
		return err
	}
	a.count(func(s *Stats) { s.Refused++ })
	if r.RetryAfter < needed {
		longer := *r
		longer.RetryAfter = needed
		return &longer
	}
	return err
}

func (a *all) Try(ctx context.Context, n int) (Decision, error) {
	_, d, err := a.TryReserve(ctx, n)
	return d, err
}

func (a *all) TryReserve(ctx context.Context, n int) (Reservation, Decision, error) {
	if err := a.check(ctx, "Try", n); err != nil {
		return nil, Decision{}, err
	}
	r := &allReservation{all: a, n: n, since: time.Now()}
	defer r.unlessWhole()
	joint := Decision{Allowed: true, Remaining: math.MaxInt}
	for _, l := range a.limits {
		part, d, err := TryReserve(ctx, l, n)
		if err != nil {
			return nil, Decision{RetryAfter: Never}, a.refused(n, err, 0)
		}
		if d.Allowed {
			r.parts = append(r.parts, part)
		} else {
			joint.Allowed = false
		}
		joint.Delay = max(joint.Delay, d.Delay)
		joint.RetryAfter = max(joint.RetryAfter, d.RetryAfter)
		joint.ResetAfter = max(joint.ResetAfter, d.ResetAfter)
		joint.Remaining = min(joint.Remaining, d.Remaining)
	}
	if !joint.Allowed {
		r.giveBack()
		a.count(func(s *Stats) { s.Refused++ })
		return nil, a.refusedTry(ctx, joint.RetryAfter), nil
	}
	r.whole = true
	r.grant(joint.Delay)
	return r, joint, nil
}

// refusedTry looks at all limits once more: those that had agreed have got back what Try took from them, so that what
// they said about it is no longer true.
func (a *all) refusedTry(ctx context.Context, retry time.Duration) Decision {
	joint := Decision{RetryAfter: retry, Remaining: math.MaxInt}
	for _, l := range a.limits {
		d, err := l.Try(ctx, 0)
		if err != nil {
			continue // ctx or the limit has ended just now; the answer is no in any case
		}
		joint.ResetAfter = max(joint.ResetAfter, d.ResetAfter)
		joint.Remaining = min(joint.Remaining, d.Remaining)
	}
	return joint
}

func (a *all) Pause(ctx context.Context, d time.Duration) error {
	if err := a.check(ctx, "Pause", 0); err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("sluice: All: Pause: d is %v: must be at least 0; nothing is paused: %w", d, ErrInvalid)
	}
	var errs []error
	for _, l := range a.limits {
		errs = append(errs, l.Pause(ctx, d))
	}
	return errors.Join(errs...)
}

func (a *all) Stats() Stats {
	a.mu.Lock()
	s := a.stats
	a.mu.Unlock()
	s.Rate, s.Burst, s.Available = Unlimited, math.MaxInt, math.MaxInt
	for _, l := range a.limits {
		if l == nil {
			continue
		}
		one := l.Stats()
		if one.Rate.Valid() && one.Rate.slower(s.Rate) {
			s.Rate = one.Rate
		}
		s.Burst = min(s.Burst, one.Burst)
		s.Available = min(s.Available, one.Available)
		s.Waiting = max(s.Waiting, one.Waiting)
	}
	return s
}

func (a *all) count(f func(*Stats)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.stats)
}
