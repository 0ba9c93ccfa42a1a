package line

import (
	"context"
	"math"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// Try takes n units if it can without blocking; for a pacer, if they fit.
func (l *Line) Try(ctx context.Context, n int) (sluice.Decision, error) {
	if err := l.check(ctx, "Try", n); err != nil {
		return sluice.Decision{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tryLocked(n, nil)
}

// TryReserve is Try with something to cancel.
func (l *Line) TryReserve(ctx context.Context, n int) (sluice.Reservation, sluice.Decision, error) {
	if err := l.check(ctx, "TryReserve", n); err != nil {
		return nil, sluice.Decision{}, err
	}
	r := &reservation{line: l, place: place{n: n, kept: true}}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, err := l.tryLocked(n, &r.place)
	if err != nil || !d.Allowed {
		return nil, d, err
	}
	return r, d, nil
}

// tryLocked decides about n units; they go to p if that is not nil.
func (l *Line) tryLocked(n int, p *place) (sluice.Decision, error) {
	now := l.nowLocked()
	if err := l.hopelessLocked(n); err != nil {
		return sluice.Decision{RetryAfter: sluice.Never}, err
	}
	l.settleLocked(now)
	d := sluice.Decision{Allowed: true}
	switch {
	case n == 0:
		if p != nil {
			p.state = granted
		}
	case l.freeLocked(n, now):
		if p != nil {
			p.joined = now
			l.grantLocked(p, now)
			break
		}
		l.countLocked(n, 0)
		l.drawLocked(n)
	case l.cfg.Pacer:
		room, ok := l.roomLocked(n)
		if !ok {
			d = sluice.Decision{RetryAfter: span(now, room)}
			break
		}
		l.lateEndLocked(now)
		if p == nil {
			p = &place{n: n}
		}
		turn := l.tailLocked(p)
		if turn == never {
			d = sluice.Decision{RetryAfter: sluice.Never} // a promise that lies beyond the end of time binds all others
			break
		}
		p.state, p.joined, p.turn = told, now, turn
		l.slots.add(p)
		l.slots.holed = l.slots.holed || now < l.paused // a told start does not end with the pause
		l.countLocked(n, p.turn-now)
		d.Delay = span(now, p.turn)
	default:
		d = sluice.Decision{RetryAfter: sluice.Never}
		if n <= l.cfg.Burst { // an oversize n can only wait in line
			d.RetryAfter = span(now, l.tailLocked(&place{n: n}))
		}
	}
	if !d.Allowed {
		l.stats.Refused++
	}
	d.ResetAfter = l.restLocked(now)
	if l.cfg.Pacer || l.head == nil && now >= l.paused {
		d.Remaining = l.thereLocked()
	}
	return d, nil
}

// restLocked returns how long until nobody is in line, no pause holds and the bucket is full.
func (l *Line) restLocked(now int64) time.Duration {
	if l.slots.holed {
		return span(now, l.planLocked(&place{}))
	}
	return span(now, l.dueLocked(l.units.Add(l.slots.units), l.bucket.Full(), l.limitLocked()))
}

// thereLocked returns the whole units that are there and that nobody has been told.
func (l *Line) thereLocked() int {
	if l.held != nil {
		return 0
	}
	outside := l.units.Add(l.slots.units)
	if l.cfg.Rate == sluice.Unlimited {
		return int((exact.U128{Lo: uint64(l.cfg.Burst)}).Sub(outside).Int64())
	}
	parts := exact.Least(l.bucket.Level(), l.bucket.Full())
	units := l.bucket.Units(parts.Sub(l.bucket.PartsOf(outside)))
	return int(min(units.Int64(), math.MaxInt))
}
