package cluster

import (
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// landLocked deals out what Redis has answered.
func (l *Limiter) landLocked(t *trip, a answer) {
	if l.outage.Down {
		l.upLocked()
	}
	l.outage.wrong = false
	l.clockLocked(a.now, t.sent, l.local())
	l.settleLocked()
	now := l.terms.parts(a.now, 0)
	if t.back != (span{}) && !a.returned {
		l.owned.put(t.back) // somebody has come after it: it stays for the next who comes
	}
	j := judge{l, now, int64(a.now) * 1000, a.debt, l.terms.parts(a.pause, 0)}
	var later []*place
	for _, p := range t.callers {
		switch cost := l.terms.cost(p.n); {
		case p.kind == hold:
			if p.state == waiting {
				l.endLocked(p, granted, nil)
			}
		case a.taken:
			j.debt = j.debt.Add(cost)
			at := span{now.Add(j.debt.Sub(cost)), now.Add(j.debt)}
			j.give(p, at)
		case j.keep(p):
			later = append(later, p)
		}
	}
	if l.end = now.Add(a.debt); a.taken {
		l.end = l.end.Add(t.ask.cost)
	}
	for _, p := range t.others {
		if j.keep(p) {
			later = append(later, p)
		}
	}
	for i := len(later) - 1; i >= 0; i-- {
		l.asking.pushFront(later[i])
	}
	if a.pause > 0 {
		l.pauseLocked(now.Add(j.pause))
	}
	if t.ask.hold > 0 {
		l.pauseLocked(l.terms.parts(a.now+t.ask.hold, 0))
	}
	l.settleLocked()
}

// judge is the moment in Redis at which a trip was decided: the calls on it stand one after the other.
type judge struct {
	l     *Limiter
	now   exact.U128
	ns    int64      // the same
	debt  exact.U128 // from now on, with those before
	pause exact.U128 // from now on
}

// wait returns how long who makes the debt has to wait for his turn.
func (j *judge) wait(debt exact.U128) exact.U128 {
	w := debt.Sub(j.l.terms.full)
	if w.Less(j.pause) {
		return j.pause
	}
	return w
}

// give hands p what Redis took for it: at once, or in line. The debt includes p.
func (j *judge) give(p *place, at span) {
	l := j.l
	if p.state != waiting {
		l.owned.put(at) // p has left meanwhile: the next who comes takes its place
		return
	}
	if p.n > 0 && l.line.count > 0 && l.owned.reaches(at.lo) {
		l.owned.put(at) // nearer than turns that are owned, after a flush or by a higher rate: those in line move up
		j.behind(p)
		return
	}
	w := j.wait(j.debt)
	due := j.ns
	if w != (exact.U128{}) {
		due = int64(l.terms.wait(j.now.Add(w)))
	}
	switch {
	case p.n == 0:
		l.decideLocked(p, j.debt, j.pause, j.now)
		l.endLocked(p, granted, nil)
	case w == exact.U128{} && (p.kind == try || l.line.count == 0):
		if p.kept {
			p.used = []span{at}
		}
		l.decideLocked(p, j.debt, j.pause, j.now)
		l.grantLocked(p, due)
	case !p.again && due-l.ahead > p.deadline:
		l.owned.put(at)
		j.refuse(p, w)
	default:
		l.owned.put(at)
		l.line.push(p)
		l.need = l.need.Add(l.terms.cost(p.n))
		p.stand()
	}
}

// behind puts p at the end of the line, or refuses it by the turn that it would have there.
func (j *judge) behind(p *place) {
	l := j.l
	l.line.push(p)
	l.need = l.need.Add(l.terms.cost(p.n))
	due, ok := l.dueLocked(p)
	w := due.Sub(j.now)
	if !ok {
		w = j.wait(j.debt)
	}
	if p.kind == try || !p.again && p.most.Less(w) {
		l.line.remove(p)
		l.need = l.need.Sub(l.terms.cost(p.n))
		j.refuse(p, exact.Most(w, exact.U128{Lo: 1}))
		return
	}
	p.stand()
}

// keep answers p, for whom nothing was taken, if that can be done by what is owed now. It says yes if p would have been
// granted, and so has to ask once more.
func (j *judge) keep(p *place) bool {
	l := j.l
	if p.state != waiting {
		return false
	}
	cost := l.terms.cost(p.n)
	debt := j.debt.Add(cost)
	w := j.wait(debt)
	if l.line.count > 0 && len(l.owned.spans) > 0 { // whose turns may be further than Redis knows: see give
		w = exact.Most(w, l.owned.spans[len(l.owned.spans)-1].hi.Add(cost).Sub(l.terms.full).Sub(j.now))
	}
	switch {
	case p.n == 0:
		l.decideLocked(p, j.debt, j.pause, j.now)
		l.endLocked(p, granted, nil)
		return false
	case !p.again && p.most.Less(w):
		j.refuse(p, w)
		return false
	}
	j.debt = debt
	return true
}

// refuse turns p away, that would have had to wait for w.
func (j *judge) refuse(p *place, w exact.U128) {
	l := j.l
	l.stats.Refused++
	retry := l.terms.wait(w)
	if p.kind == try {
		l.decideLocked(p, j.debt, j.pause, j.now)
		p.decision.Allowed, p.decision.RetryAfter = false, retry
		l.endLocked(p, refused, nil)
		return
	}
	reason := sluice.ErrDeadline
	if retry > l.cfg.Horizon {
		reason = sluice.ErrMaxWait
	}
	l.endLocked(p, refused, l.refusal(reason, p.n, retry))
}

// decideLocked writes what an allowed Try is told, when so much is owed after it.
func (l *Limiter) decideLocked(p *place, debt, pause, now exact.U128) {
	if p.kind != try {
		return
	}
	p.decision = sluice.Decision{Allowed: true, ResetAfter: l.terms.wait(debt)}
	if pause == (exact.U128{}) && l.line.count == 0 {
		p.decision.Remaining = l.leftLocked(debt, now)
	}
}

// overdue is called when a trip has taken longer than Timeout: Redis is out, and nobody waits for it any more. The trip goes
// on. Its answer ends the outage, and what it brings is owned by the next who comes.
func (l *Limiter) overdue(t *trip) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.trip != t {
		return
	}
	l.settleLocked()
	l.downLocked(noAnswer(l.cfg.Timeout))
	for _, all := range [][]*place{t.callers, t.others} {
		for _, p := range all {
			if p.state == waiting {
				p.shared = true
				l.failLocked(p)
			}
		}
	}
}

type noAnswer time.Duration

func (e noAnswer) Error() string { return "no answer within " + time.Duration(e).String() }

// Timeout says that it is a timeout, as net.Error does.
func (e noAnswer) Timeout() bool { return true }
