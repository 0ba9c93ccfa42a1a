package cluster

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// call brings p before Redis, or gives it what this process owns, and sleeps until it is answered.
func (l *Limiter) call(ctx context.Context, p *place) error {
	if err := l.enter(p); err != nil {
		return err
	}
	return l.sleep(ctx, p)
}

// enter is the part of a call that does not block.
func (l *Limiter) enter(p *place) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.hopelessLocked(p.n); err != nil {
		return err
	}
	p.joined = l.local()
	if p.kind == wait && p.n == 0 {
		l.endLocked(p, granted, nil)
		return nil
	}
	switch {
	case l.outage.Down:
		l.failLocked(p)
	case len(l.owned.spans) > 0 && l.firstLocked() && l.ownLocked(p, l.settleLocked()):
	default:
		l.asking.push(p)
		l.flyLocked()
	}
	return nil
}

// firstLocked says whether nobody asks Redis who came before.
func (l *Limiter) firstLocked() bool {
	return l.asking.count == 0 && (l.trip == nil || len(l.trip.callers) == 0)
}

// sleep blocks until p is answered, or gives it up when ctx ends first. It does not wait for Redis: a trip under way
// goes on, and what it brings for p is owned by whoever comes next.
func (l *Limiter) sleep(ctx context.Context, p *place) error {
	if p.await(ctx.Done()) && !p.kept && p.fallback == nil {
		err := p.err // settled for good
		if p.kind == wait && !p.shared {
			*p = place{wake: p.wake}
			l.spares.Put(p)
		}
		return err
	}
	l.mu.Lock()
	l.settleLocked() // a turn that came before ctx ended stands, even if the timer has not told it yet
	switch {
	case p.state == waiting:
		l.leaveLocked(p)
		if p.kind == wait {
			l.stats.Canceled++
		}
		l.mu.Unlock()
		return ctx.Err()
	case p.fallback != nil && p.kind == wait:
		l.mu.Unlock()
		return l.waitLocally(ctx, p)
	}
	defer l.mu.Unlock()
	if p.state == left && ctx.Err() != nil {
		return ctx.Err() // of several who sleep on one Reservation, none is told that another was first
	}
	return p.err
}

// Try takes n units if they can be had now. It waits for Redis, up to Timeout. See sluice.Limiter.
func (l *Limiter) Try(ctx context.Context, n int) (sluice.Decision, error) {
	if err := l.check(ctx, "Try", n); err != nil {
		return sluice.Decision{}, err
	}
	_, d, err := l.try(ctx, newPlace(try, n))
	return d, err
}

// TryReserve is Try with something to cancel. See sluice.TryReserver.
func (l *Limiter) TryReserve(ctx context.Context, n int) (sluice.Reservation, sluice.Decision, error) {
	if err := l.check(ctx, "TryReserve", n); err != nil {
		return nil, sluice.Decision{}, err
	}
	return l.try(ctx, newKept(try, n))
}

func (l *Limiter) try(ctx context.Context, p *place) (sluice.Reservation, sluice.Decision, error) {
	switch err := l.call(ctx, p); {
	case err != nil:
		return nil, sluice.Decision{RetryAfter: sluice.Never}, err
	case p.fallback != nil:
		return l.tryLocally(ctx, p)
	case !p.decision.Allowed:
		return nil, p.decision, nil
	}
	return &reservation{l, p}, p.decision, nil
}

// ownLocked answers p with what this process owns, without a trip: a spare that somebody left. It says no if there is
// none, or not enough.
func (l *Limiter) ownLocked(p *place, now exact.U128) bool {
	cost := l.terms.cost(p.n)
	if p.n == 0 || p.kind == hold || l.owned.total.Less(l.need.Add(cost)) {
		return false
	}
	if l.line.count == 0 {
		plan, ok := l.owned.plan(cost, l.floor, l.terms.full)
		switch {
		case !ok || p.kind == try && now.Less(plan.at):
			return false
		case !now.Less(plan.at):
			p.used = l.owned.take(plan)
			l.decideLocked(p, l.end.Sub(now), exact.U128{}, now)
			l.grantLocked(p, int64(l.terms.wait(plan.at)))
			return true
		}
	}
	if p.kind == try {
		return false
	}
	l.line.push(p)
	l.need = l.need.Add(cost)
	due, ok := l.dueLocked(p)
	if wait := l.terms.wait(due.Sub(now)); ok && (p.again || wait <= l.cfg.Horizon && l.local()+int64(wait) <= p.deadline) {
		p.stand()
		l.settleLocked()
		return true
	}
	// What lies further ahead is nearer than anything that Redis can give; it is Redis that says no all the same, so that
	// a refusal always has one cause.
	l.line.remove(p)
	l.need = l.need.Sub(cost)
	return false
}

// dueLocked returns when the turn of p, which is in line, comes.
func (l *Limiter) dueLocked(p *place) (exact.U128, bool) {
	owned, floor := l.owned, l.floor
	if l.line.head != p {
		owned = l.owned.clone()
	}
	for q := l.line.head; q != nil; q = q.next {
		plan, ok := owned.plan(l.terms.cost(q.n), floor, l.terms.full)
		if !ok || q == p {
			return plan.at, ok
		}
		owned.take(plan)
		floor = plan.at
		owned.clip(floor)
	}
	return exact.U128{}, false
}

// leaveLocked takes p, who waits, out of where it is. All behind move up at once, and what is left over then is at
// the tail of what this process owns.
func (l *Limiter) leaveLocked(p *place) {
	l.endLocked(p, left, errCanceled)
	switch p.in {
	case &l.line:
		l.line.remove(p)
		l.need = l.need.Sub(l.terms.cost(p.n))
	case &l.asking:
		l.asking.remove(p)
	}
	l.settleLocked()
	l.flyLocked()
}

// grantLocked counts p, whose turn was at the given time of Redis, in ns.
func (l *Limiter) grantLocked(p *place, at int64) {
	l.stats.Granted++
	l.stats.Units += uint64(p.n)
	if waited := at - l.ahead - p.joined; waited > 0 {
		l.stats.Waited += min(time.Duration(waited), sluice.Never-l.stats.Waited)
	}
	l.endLocked(p, granted, nil)
}

// endLocked answers p. While an answer of Redis is dealt out, sleepers are woken after the lock is released: they mostly
// come right back, and would only queue for it.
func (l *Limiter) endLocked(p *place, s state, err error) {
	p.state, p.err = s, err
	p.stand()
	if l.landing {
		l.woken = append(l.woken, p)
	} else {
		p.told()
	}
}
