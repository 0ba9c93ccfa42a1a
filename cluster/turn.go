package cluster

import (
	"time"

	"github.com/fadf4e53/sluice/internal/exact"
)

// settleLocked lets everybody go whose turn has come, and loses what has passed unused. It returns the time.
// Whatever changes who stands in line, or what is owned, settles before and after.
func (l *Limiter) settleLocked() exact.U128 {
	now := l.terms.span(time.Duration(l.nowLocked()))
	var next plan
	for p := l.line.head; p != nil; p = l.line.head {
		plan, ok := l.owned.plan(l.terms.cost(p.n), l.floor, l.terms.full)
		if !ok {
			l.askAgainLocked()
			break
		}
		if now.Less(plan.at) {
			next = plan
			break
		}
		l.line.remove(p)
		l.takeLocked(p, plan)
		l.need = l.need.Sub(plan.need)
		l.raiseLocked(plan.at) // first come, first served: nobody starts before p
	}
	l.raiseLocked(now)
	l.armLocked(next.at)
	return now
}

// raiseLocked lets nothing go before floor. What is owned and lies before it has passed.
func (l *Limiter) raiseLocked(floor exact.U128) {
	if l.floor.Less(floor) {
		l.floor = floor
	}
	l.owned.clip(l.floor)
}

// takeLocked grants p what plan says.
func (l *Limiter) takeLocked(p *place, plan plan) {
	used := l.owned.take(plan)
	if p.kept {
		p.used = used
	}
	l.grantLocked(p, int64(l.terms.wait(plan.at)))
}

// askAgainLocked lets those ask once more whose turns a pause has overtaken. They keep their order, come before all
// others who ask, and are not refused any more.
func (l *Limiter) askAgainLocked() {
	owned, floor := l.owned.clone(), l.floor
	var from *place
	for p := l.line.head; p != nil && from == nil; p = p.next {
		plan, ok := owned.plan(l.terms.cost(p.n), floor, l.terms.full)
		if !ok {
			from = p
			break
		}
		owned.take(plan)
		floor = plan.at
		owned.clip(floor)
	}
	for p := l.line.tail; from != nil && p != nil; p = l.line.tail {
		l.line.remove(p)
		l.need = l.need.Sub(l.terms.cost(p.n))
		p.again = true
		l.asking.pushFront(p)
		if p == from {
			break
		}
	}
	l.flyLocked()
}

// armLocked sets the timer for the next turn.
func (l *Limiter) armLocked(turn exact.U128) {
	if l.armed == turn {
		return
	}
	l.armed = turn
	if turn == (exact.U128{}) {
		if l.timer != nil {
			l.timer.Stop()
		}
		return
	}
	d := l.terms.wait(turn) - time.Duration(l.nowLocked())
	if l.timer == nil {
		l.timer = time.AfterFunc(d, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.armed = exact.U128{}
			l.settleLocked()
		})
		return
	}
	l.timer.Reset(d)
}

// clockLocked learns what Redis' clock says: it said now, in µs, at some time between sent and came.
//
// The latest reading that was possible is kept, so that no turn is early, and one that is nearer to the truth replaces one
// that had come slowly. A clock that was set back, or another server's, is one that said now after it should have: what
// is owned then keeps its time by our clock.
func (l *Limiter) clockLocked(now uint64, sent, came int64) {
	ns := int64(now) * 1000
	least, most := ns-came, ns+1000-sent
	switch {
	case !l.known:
		l.known, l.ahead = true, least
	case l.ahead > most:
		by := l.terms.span(time.Duration(l.ahead - least))
		l.owned.shift(by)
		l.floor, l.paused = l.floor.Sub(by), l.paused.Sub(by)
		l.ahead = least
	default:
		l.ahead = max(l.ahead, least)
	}
}

// pauseLocked learns of a pause until then.
func (l *Limiter) pauseLocked(until exact.U128) {
	if !l.paused.Less(until) {
		return
	}
	l.settleLocked()
	l.paused = until
	l.raiseLocked(until)
	l.askAgainLocked()
}
