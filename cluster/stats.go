package cluster

import (
	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// Stats returns a snapshot of this process's share. Waiting counts who is asking Redis, too. Available is what Redis last
// said, and the time since; during an outage what Config.Outage lets go.
func (l *Limiter) Stats() sluice.Stats {
	if l == nil || l.client == nil {
		return sluice.Stats{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.settleLocked()
	s := l.stats
	s.Rate, s.Burst = l.cfg.Rate, l.cfg.Burst
	s.Waiting = l.line.count + l.asking.waiting()
	if l.trip != nil {
		s.Waiting += l.trip.waiting()
	}
	switch {
	case l.outage.local != nil:
		local := l.outage.local.limiter.Stats()
		s.Available = local.Available
		s.Waiting += local.Waiting
	case l.outage.Down && l.cfg.Outage == FailOpen:
		s.Available = s.Burst
	case l.outage.Down:
		s.Available = 0
	default:
		s.Available = l.availableLocked(now)
	}
	return s
}

// availableLocked returns the units that can go now, as far as this process knows.
func (l *Limiter) availableLocked(now exact.U128) int {
	if l.line.count > 0 || now.Less(l.paused) {
		return 0
	}
	return l.leftLocked(l.end.Sub(now), now)
}

// leftLocked returns the units that can go at an instant at which so much is owed and nobody is in line: those that
// are left in Redis, or that this process owns, but not both at once.
func (l *Limiter) leftLocked(debt, now exact.U128) int {
	free := l.terms.full.Sub(debt)
	if l.terms.d == 0 {
		return l.cfg.Burst
	}
	var own exact.U128
	for _, s := range l.owned.spans {
		if end := exact.Least(s.hi, now.Add(l.terms.full)); s.lo.Less(end) {
			own = own.Add(end.Sub(s.lo))
		}
	}
	if free.Less(own) {
		free = own
	}
	return l.terms.units(free)
}
