package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// Reserve takes a place in line. It waits for Redis, up to Timeout, but not for the turn. See sluice.Limiter.
func (l *Limiter) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	if err := l.check(ctx, "Reserve", n); err != nil {
		return nil, err
	}
	p := newKept(wait, n)
	if err := l.enter(p); err != nil {
		return nil, err
	}
	if err := l.placed(ctx, p); err != nil {
		return nil, err
	}
	if p.fallback != nil {
		return l.reserveLocally(ctx, p)
	}
	return &reservation{l, p}, nil
}

// placed blocks until p stands in line or is answered.
func (l *Limiter) placed(ctx context.Context, p *place) error {
	select {
	case <-p.stood:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settleLocked()
	if !p.stands { // ctx has ended, and nothing came first
		l.leaveLocked(p)
		l.stats.Canceled++
		return ctx.Err()
	}
	return p.err
}

// reservation is a place that its owner holds.
type reservation struct {
	l *Limiter
	p *place
}

// Delay returns how long until the turn comes. While its turn has to be asked for once more, after a pause, it is what is
// known by now.
func (r *reservation) Delay() time.Duration {
	l, p := r.l, r.p
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.settleLocked()
	switch {
	case p.state == granted:
		return 0
	case p.state != waiting:
		return sluice.Never
	}
	return l.delayLocked(p, now)
}

func (l *Limiter) delayLocked(p *place, now exact.U128) time.Duration {
	due, ok := l.dueLocked(p)
	if !ok {
		due = l.end.Add(l.terms.cost(p.n)).Sub(l.terms.full)
		if due.Less(l.paused) {
			due = l.paused
		}
	}
	return max(l.terms.wait(due.Sub(now)), 1)
}

// Wait sleeps until the turn comes.
func (r *reservation) Wait(ctx context.Context) error {
	l, p := r.l, r.p
	if ctx == nil {
		return fmt.Errorf("cluster: Reservation.Wait: ctx is nil: must be a context; the place is kept: %w", sluice.ErrInvalid)
	}
	l.mu.Lock()
	now := l.settleLocked()
	if p.state == waiting {
		if err := ctx.Err(); err != nil {
			l.leaveLocked(p)
			l.stats.Canceled++
			l.mu.Unlock()
			return err
		}
		if wait := l.delayLocked(p, now); !p.again && l.local()+int64(wait) > l.deadline(ctx) && int64(wait) > 0 {
			l.leaveLocked(p)
			l.stats.Refused++
			l.mu.Unlock()
			return l.refusal(sluice.ErrDeadline, p.n, wait)
		}
	}
	l.mu.Unlock()
	return l.sleep(ctx, p)
}

// Cancel gives the place back; after the turn, as much as the time since has not made up.
func (r *reservation) Cancel() {
	l, p := r.l, r.p
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settleLocked()
	switch p.state {
	case waiting:
		l.leaveLocked(p)
		l.stats.Canceled++
	case granted:
		p.state, p.err = left, errCanceled
		l.stats.Units -= l.backLocked(p)
		l.settleLocked()
		l.flyLocked()
	}
}

var errCanceled = fmt.Errorf("cluster: Reservation.Wait after Cancel: nothing is reserved any more: %w", sluice.ErrInvalid)

// backLocked puts back what p used, as far as that has not passed, and returns its units, a fraction counted as one.
func (l *Limiter) backLocked(p *place) uint64 {
	if l.terms.d == 0 || p.open {
		return uint64(p.n)
	}
	var back exact.U128
	for _, s := range p.used {
		if s.lo.Less(l.floor) {
			s.lo = l.floor
		}
		if s.lo.Less(s.hi) {
			back = back.Add(s.hi.Sub(s.lo))
			l.owned.put(s)
		}
	}
	return min(back.DivUp(l.terms.d).Lo, uint64(p.n))
}
