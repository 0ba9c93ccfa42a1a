package sluice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// allReservation is a place in the line of each limit.
type allReservation struct {
	all   *all
	n     int
	since time.Time
	parts []Reservation
	whole bool // all of them were had

	mu   sync.Mutex
	done bool // granted or given back, and counted as that
	left bool
}

func (r *allReservation) Delay() time.Duration {
	if r.gone() {
		return Never
	}
	d := r.longest()
	if d == 0 {
		r.settle()
	}
	return d
}

func (r *allReservation) longest() time.Duration {
	var d time.Duration
	for _, p := range r.parts {
		d = max(d, p.Delay())
	}
	return d
}

// settle counts r as granted once all turns have come.
func (r *allReservation) settle() {
	if r.longest() == 0 {
		r.grant(time.Since(r.since))
	}
}

// grant counts r as granted, unless it has ended before.
func (r *allReservation) grant(waited time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done || r.n == 0 {
		return
	}
	r.done = true
	r.all.count(func(s *Stats) {
		s.Granted++
		s.Units += uint64(r.n)
		if s.Waited += waited; s.Waited < 0 {
			s.Waited = Never
		}
	})
}

func (r *allReservation) Wait(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("sluice: All: Reservation.Wait: ctx is nil: must be a context; the place is kept: %w", ErrInvalid)
	}
	if r.gone() {
		return fmt.Errorf("sluice: All: Reservation.Wait after Cancel: nothing is reserved any more: %w", ErrInvalid)
	}
	if err := r.hopeless(ctx); err != nil {
		return r.fail(err)
	}
	for _, p := range r.parts {
		if err := p.Wait(ctx); err != nil {
			return r.fail(err)
		}
	}
	r.grant(time.Since(r.since))
	return nil
}

// hopeless refuses what the latest of the limits cannot grant by ctx's deadline.
func (r *allReservation) hopeless(ctx context.Context) error {
	deadline, ok := ctx.Deadline()
	if !ok || ctx.Err() != nil {
		return nil
	}
	left := time.Until(deadline) // before any Delay is looked at: what is due exactly then is not refused
	no := &Refusal{Reason: ErrDeadline, N: r.n}
	for i, p := range r.parts {
		if d := p.Delay(); d > no.RetryAfter && d != Never {
			s := r.all.limits[i].Stats()
			no.RetryAfter, no.Rate, no.Burst = d, s.Rate, s.Burst
		}
	}
	if no.RetryAfter > 0 && no.RetryAfter > left {
		return no
	}
	return nil
}

func (r *allReservation) Cancel() {
	if r.gone() {
		return
	}
	r.settle() // after the turn it is a grant that is given back
	r.mu.Lock()
	again, was := r.left, r.done
	r.left, r.done = true, true
	r.mu.Unlock()
	if again {
		return
	}
	r.giveBack()
	if r.n == 0 {
		return
	}
	r.all.count(func(s *Stats) {
		if !was {
			s.Canceled++
		} else if s.Units >= uint64(r.n) {
			s.Units -= uint64(r.n)
		}
	})
}

// gone says whether r was given back.
func (r *allReservation) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.left
}

// fail gives everything back, and counts why: a limit said no, or the caller left.
func (r *allReservation) fail(err error) error {
	if r.end() {
		var no *Refusal
		refused := errors.As(err, &no)
		r.all.count(func(s *Stats) {
			if refused {
				s.Refused++
			} else {
				s.Canceled++
			}
		})
	}
	return err
}

// end gives everything back, and says whether r was neither granted nor given back before.
func (r *allReservation) end() bool {
	r.mu.Lock()
	first := !r.done
	r.left, r.done = true, true
	r.mu.Unlock()
	if first {
		r.giveBack()
	}
	return first
}

// unlessWhole gives back what was had if not all was.
func (r *allReservation) unlessWhole() {
	if !r.whole {
		r.giveBack()
	}
}

func (r *allReservation) giveBack() {
	for _, p := range r.parts {
		p.Cancel()
	}
}
