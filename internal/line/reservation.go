package line

import (
	"context"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// reservation is a place that its owner holds.
type reservation struct {
	line  *Line
	place place
}

// Reserve takes a place in line without blocking.
func (l *Line) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	if err := l.check(ctx, "Reserve", n); err != nil {
		return nil, err
	}
	r := &reservation{line: l, place: place{n: n, kept: true}}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	if err := l.enterLocked(&r.place, now, never); err != nil {
		return nil, err
	}
	l.armLocked(now)
	return r, nil
}

// Delay returns how long until the turn comes.
func (r *reservation) Delay() time.Duration {
	l, p := r.line, &r.place
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	l.settleLocked(now)
	switch p.state {
	case granted:
		return 0
	case told:
		return span(now, p.turn)
	case waiting:
		return span(now, l.placeLocked(p))
	}
	return sluice.Never
}

// Wait sleeps until the turn comes.
func (r *reservation) Wait(ctx context.Context) error {
	l, p := r.line, &r.place
	if ctx == nil {
		return fmt.Errorf("%s: Reservation.Wait: ctx is nil: must be a context; the place is kept: %w", l.name, sluice.ErrInvalid)
	}
	l.mu.Lock()
	now := l.nowLocked()
	l.settleLocked(now)
	if p.state == waiting || p.state == told {
		if err := r.hopelessLocked(ctx, now); err != nil {
			l.leaveLocked(p, now)
			l.mu.Unlock()
			return err
		}
		if p.wake == nil {
			p.wake = make(chan struct{})
		}
		l.lieDownLocked(p, now)
		l.mu.Unlock()
		return l.sleep(ctx, p)
	}
	defer l.mu.Unlock()
	switch p.state {
	case closed:
		return l.refusalLocked(sluice.ErrClosed, p.n, sluice.Never)
	case left:
		return l.cancelled()
	}
	return nil
}

// hopelessLocked says why it is useless to sleep.
func (r *reservation) hopelessLocked(ctx context.Context, now int64) error {
	l, p := r.line, &r.place
	if err := ctx.Err(); err != nil {
		l.stats.Canceled++
		return err
	}
	deadline := l.deadlineLocked(ctx, now)
	if deadline == never {
		return nil
	}
	due := p.turn
	if p.state == waiting {
		due = l.placeLocked(p)
	}
	if due > deadline {
		return l.refuseLocked(sluice.ErrDeadline, p.n, span(now, due))
	}
	return nil
}

func (l *Line) cancelled() error {
	return fmt.Errorf("%s: Reservation.Wait after Cancel: nothing is reserved any more: %w", l.name, sluice.ErrInvalid)
}

// Cancel gives the place back.
func (r *reservation) Cancel() {
	l, p := r.line, &r.place
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	l.settleLocked(now)
	switch p.state {
	case waiting, told:
		l.leaveLocked(p, now)
		l.stats.Canceled++
	case granted:
		if p.n == 0 {
			break
		}
		l.stats.Units -= l.giveBackLocked(p)
		l.slots.holed = len(l.slots.list) > 0
		l.settleLocked(now)
		l.armLocked(now)
	default:
		return
	}
	p.state = left
}

// giveBackLocked puts back what p took, as far as the filling has not made up for it, and returns the units that
// have come back, a fraction counted as one.
func (l *Line) giveBackLocked(p *place) uint64 {
	full := l.bucket.Full()
	if full == (exact.U128{}) {
		return uint64(p.n) // unlimited
	}
	l.peaks.Note(l.bucket.Level(), full)
	back := exact.Least(l.bucket.Parts(uint64(p.n)), full.Sub(l.peaks.Since(p.mark, full)))
	l.bucket.Give(back)
	l.peaks.Gave(p.mark, back)
	units := l.bucket.Units(back)
	if l.bucket.PartsOf(units).Less(back) {
		return units.Lo + 1
	}
	return units.Lo
}
