package line

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// openLocked refuses to change a Line that was closed.
func (l *Line) openLocked() error {
	if l.shut {
		return l.refusalLocked(sluice.ErrClosed, 0, sluice.Never)
	}
	return nil
}

func unmade(call string) error {
	return fmt.Errorf("sluice: %s on a limiter that New did not make; nothing was taken: %w", call, sluice.ErrInvalid)
}

// changeLocked makes a change between what was and what will be: every turn that has come is granted by the old
// law, and everybody else is planned by the new one.
func (l *Line) changeLocked(f func(now int64)) {
	now := l.nowLocked()
	l.settleLocked(now)
	l.lateEndLocked(now)
	l.late.until = math.MinInt64
	f(now)
	l.slots.holed = len(l.slots.list) > 0
	l.settleLocked(now)
	l.armLocked(now)
}

// SetRate changes the rate. Who sleeps is planned anew at once.
func (l *Line) SetRate(r sluice.Rate) error {
	if l == nil {
		return unmade("SetRate")
	}
	if !r.Valid() {
		return fmt.Errorf("%s: SetRate: rate is %s: must be at least 1 unit per at least 1ns; the rate is unchanged: %w", l.name, r, sluice.ErrInvalid)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.openLocked(); err != nil || r == l.cfg.Rate {
		return err
	}
	l.changeLocked(func(int64) {
		l.bucket.Clip(l.limitLocked())
		l.peaks.Note(l.bucket.Level(), l.bucket.Full())
		_, was := l.cfg.Rate.Fraction()
		n, is := r.Fraction()
		l.peaks.Rescale(uint64(was), uint64(is))
		l.bucket.SetRate(uint64(n), uint64(is))
		for _, p := range l.slots.list {
			p.over = exact.U128{} // it was a fraction of the old rate's nanosecond
		}
		l.cfg.Rate = r
	})
	return nil
}

// SetBurst changes the burst.
func (l *Line) SetBurst(b int) error {
	if l == nil {
		return unmade("SetBurst")
	}
	if b < 1 {
		return fmt.Errorf("%s: SetBurst: burst is %d: must be at least 1; the burst is unchanged: %w", l.name, b, sluice.ErrInvalid)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.openLocked(); err != nil {
		return err
	}
	l.changeLocked(func(int64) {
		l.peaks.Note(l.bucket.Level(), l.bucket.Full())
		l.bucket.SetBurst(uint64(b))
		l.bucket.Clip(l.limitLocked()) // a large head keeps what has gathered for it
		l.cfg.Burst = b
	})
	return nil
}

// Pause grants nothing before now+d.
func (l *Line) Pause(ctx context.Context, d time.Duration) error {
	if l == nil {
		return unmade("Pause")
	}
	if err := l.check(ctx, "Pause", 0); err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("%s: Pause: d is %v: must be at least 0; nothing is paused: %w", l.name, d, sluice.ErrInvalid)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.openLocked(); err != nil || d == 0 {
		return err
	}
	l.changeLocked(func(now int64) { l.paused = max(l.paused, add(now, int64(d))) })
	return nil
}

// Close wakes all in line with ErrClosed.
func (l *Line) Close() error {
	if l == nil {
		return unmade("Close")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return nil
	}
	l.settleLocked(l.nowLocked()) // a turn that came before stands
	l.shut = true
	for p := l.head; p != nil; p = l.head {
		l.unlinkLocked(p)
		l.stats.Refused++
		l.endLocked(p, closed)
	}
	for _, p := range l.slots.list {
		if p.kept {
			l.endLocked(p, closed)
		}
	}
	l.slots = slots{}
	l.disarmLocked()
	return nil
}

// Level returns the water in a pacer's bucket: what has started and not run out, and what waits to start.
func (l *Line) Level() float64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settleLocked(l.nowLocked())
	outside := l.units.Add(l.slots.units)
	if l.cfg.Rate == sluice.Unlimited {
		return float64(outside.Int64())
	}
	return l.bucket.Float(l.bucket.Full().Sub(l.bucket.Level()).Add(l.bucket.PartsOf(outside)))
}

// Stats returns a snapshot.
func (l *Line) Stats() sluice.Stats {
	if l == nil {
		return sluice.Stats{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	l.settleLocked(now)
	s := l.stats
	s.Rate, s.Burst, s.Waiting = l.cfg.Rate, l.cfg.Burst, l.count
	if l.head == nil && now >= l.paused && !l.shut {
		s.Available = l.thereLocked()
	}
	return s
}
