package line

import (
	"context"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// late is the credit for being late ourselves. When a grant leaves nobody in line, the schedule would stop there, and
// the time until the woken caller runs would be lost to it: a loop of Waits would fall behind by every delay of the
// timer. So the bucket runs on until that caller has been seen to run, and what is over a full one then may be
// taken for as long again. Idle time earns nothing.
type late struct {
	place *place // whom we wait to see; nil if nobody
	since int64  // when its turn was
	until int64  // when the credit ends
}

// lateEndLocked ends the time that earns credit.
func (l *Line) lateEndLocked(now int64) {
	if l.late.place != nil {
		l.bucket.Run(now)
		l.late = late{until: add(now, now-l.late.since)}
	}
}

// check finds what is wrong with a call before it looks at the limit.
func (l *Line) check(ctx context.Context, call string, n int) error {
	switch {
	case l == nil:
		return unmade(call)
	case ctx == nil:
		return fmt.Errorf("%s: %s: ctx is nil: must be a context; nothing was taken: %w", l.name, call, sluice.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("%s: %s: n is %d: must be at least 0; nothing was taken: %w", l.name, call, n, sluice.ErrInvalid)
	}
	return nil
}

// refuseLocked counts a no.
func (l *Line) refuseLocked(reason error, n int, retry time.Duration) error {
	l.stats.Refused++
	return l.refusalLocked(reason, n, retry)
}

func (l *Line) refusalLocked(reason error, n int, retry time.Duration) error {
	return &sluice.Refusal{Reason: reason, N: n, RetryAfter: retry, Rate: l.cfg.Rate, Burst: l.cfg.Burst}
}

// hopelessLocked refuses what no waiting helps.
func (l *Line) hopelessLocked(n int) error {
	switch {
	case l.shut:
		return l.refuseLocked(sluice.ErrClosed, n, sluice.Never)
	case n > l.cfg.Burst && !l.cfg.Oversize:
		return l.refuseLocked(sluice.ErrTooLarge, n, sluice.Never)
	}
	return nil
}

// enterLocked grants n units to p, or lets it join the line, or refuses it. deadline bounds the turn.
func (l *Line) enterLocked(p *place, now, deadline int64) error {
	if err := l.hopelessLocked(p.n); err != nil {
		return err
	}
	if p.n == 0 {
		p.state = granted
		return nil
	}
	l.settleLocked(now)
	p.joined = now
	if l.freeLocked(p.n, now) {
		l.grantLocked(p, now)
		return nil
	}
	l.lateEndLocked(now)
	if room, ok := l.roomLocked(p.n); !ok {
		return l.refuseLocked(sluice.ErrFull, p.n, span(now, room))
	}
	switch due := l.tailLocked(p); {
	case l.cfg.MaxWait > 0 && span(now, due) > l.cfg.MaxWait:
		return l.refuseLocked(sluice.ErrMaxWait, p.n, span(now, due))
	case due > deadline:
		return l.refuseLocked(sluice.ErrDeadline, p.n, span(now, due))
	}
	l.joinLocked(p)
	return nil
}

// roomLocked says whether n more units may join, or else when.
func (l *Line) roomLocked(n int) (int64, bool) {
	if !l.cfg.Pacer {
		if l.cfg.MaxWaiters == 0 || l.count < l.cfg.MaxWaiters {
			return 0, true
		}
		due, _ := l.nextLocked()
		return due, false
	}
	units := l.units.Add(l.slots.units).Add(exact.U128{Lo: uint64(n)})
	need := l.bucket.PartsOf(units)
	switch {
	case l.cfg.Rate == sluice.Unlimited: // units are worth no parts, but the line that a pause makes is bounded
		return l.paused, !(exact.U128{Lo: uint64(l.cfg.Burst)}).Less(units)
	case l.bucket.Has(need):
		return 0, true
	case l.slots.holed:
		return l.planRoomLocked(n), false
	case l.bucket.Full().Less(need): // not before some of those in line have started
		return l.dueLocked(exact.U128{}, need, l.limitLocked()), false
	}
	return l.bucket.When(need), false
}

// deadlineLocked returns ctx's deadline as an instant of this Line, now being what its clock says.
func (l *Line) deadlineLocked(ctx context.Context, now int64) int64 {
	deadline, ok := ctx.Deadline()
	switch {
	case !ok:
		return never
	case l.cfg.Now != nil, deadline == deadline.Round(0):
		// Contexts do not run by a clock of the caller's; and a deadline that has no monotonic reading, as one that came
		// over a wire, would be measured from base by the wall clock, which may have been set since.
		return add(now, int64(time.Until(deadline)))
	}
	return int64(deadline.Sub(l.base))
}

// Wait blocks until n units may go.
func (l *Line) Wait(ctx context.Context, n int) error {
	if err := l.check(ctx, "Wait", n); err != nil {
		return err
	}
	l.mu.Lock()
	now := l.nowLocked()
	if l.passLocked(n, now) {
		l.mu.Unlock()
		return nil
	}
	p, _ := l.spare.Get().(*place)
	if p == nil {
		p = &place{wake: make(chan struct{}, 1)}
	}
	p.n = n
	err := l.enterLocked(p, now, l.deadlineLocked(ctx, now))
	if err != nil || p.state == granted {
		l.mu.Unlock()
	} else {
		l.lieDownLocked(p, now)
		l.mu.Unlock()
		err = l.sleep(ctx, p)
	}
	*p = place{wake: p.wake}
	l.spare.Put(p)
	return err
}

// passLocked is the way of most calls, which find nobody in line and enough in the bucket: what settleLocked,
// freeLocked and grantLocked would do, without a place and in half the time. It says no where it is not sure.
func (l *Line) passLocked(n int, now int64) bool {
	if l.head != nil || l.late.place != nil || l.held != nil || len(l.slots.list) > 0 ||
		now < max(l.paused, l.late.until) || l.shut || n <= 0 || n > l.cfg.Burst {
		return false
	}
	l.bucket.Advance(now, l.bucket.Full())
	if !l.bucket.Has(l.needLocked(n)) {
		return false
	}
	l.stats.Granted++
	l.stats.Units = sum(l.stats.Units, uint64(n))
	l.drawLocked(n)
	return true
}

// lieDownLocked says that one more goroutine is about to sleep on p.
func (l *Line) lieDownLocked(p *place, now int64) {
	p.asleep++
	l.sleepers++
	l.armLocked(now)
}

// sleep blocks until p's turn has come, or gives the place up when ctx ends first.
func (l *Line) sleep(ctx context.Context, p *place) error {
	select {
	case <-p.wake:
		// Only a place that is ours alone may be read without the lock: a Reservation can be cancelled by now.
		if !p.kept && p.state == granted && !p.report {
			return nil
		}
		l.mu.Lock()
	case <-ctx.Done():
		l.mu.Lock()
		// A turn that came before ctx ended stands, even if the timer has not told it yet.
		if l.settleLocked(l.nowLocked()); p.state != waiting && p.state != told && !p.kept {
			<-p.wake
		}
	}
	defer l.mu.Unlock()
	now := l.nowLocked()
	if p.report {
		l.seenLocked(p, now)
	}
	switch p.state {
	case granted:
		return nil
	case closed:
		return l.refusalLocked(sluice.ErrClosed, p.n, sluice.Never)
	case left:
		if err := ctx.Err(); err != nil {
			return err // of several who slept on it, another was first to leave
		}
		return l.cancelled()
	}
	p.asleep--
	l.sleepers--
	l.leaveLocked(p, now)
	l.stats.Canceled++
	return ctx.Err()
}

// seenLocked is told when p, which was asked to look in, runs.
func (l *Line) seenLocked(p *place, now int64) {
	if l.late.place == p {
		l.settleLocked(now)
		l.lateEndLocked(now)
	}
	if l.held == p {
		l.bucket.Skip(now)
		l.held = nil
		l.settleLocked(now)
		l.armLocked(now)
	}
}
