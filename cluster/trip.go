package cluster

import (
	"fmt"
	"runtime"
	"time"

	"github.com/fadf4e53/sluice/internal/exact"
)

// A trip is one question to Redis, for all who had come when it began.
type trip struct {
	ask     ask
	callers []*place // in order: Redis takes what they need, for all of them or for none
	others  []*place // who cannot be granted together with the callers, and is judged by the answer
	back    span     // given back, if it is still the end of the debt
	debt    int      // units that went in this process while Redis was out
	sent    int64    // by our clock
}

// waiting counts those who wait for a turn.
func (t *trip) waiting() int {
	n := 0
	for _, all := range [][]*place{t.callers, t.others} {
		for _, p := range all {
			if p.kind == wait && p.state == waiting {
				n++
			}
		}
	}
	return n
}

// flyLocked begins a trip if there is something to ask and none is under way.
func (l *Limiter) flyLocked() {
	if l.trip != nil {
		return
	}
	l.trip = &trip{} // loading may want to fly
	if l.trip = l.loadLocked(); l.trip != nil {
		l.landed = make(chan struct{})
		go l.fly(l.trip)
	}
}

// fly makes one trip after the other until there is nothing to ask any more. What comes while one is under way shares the
// next: the more callers there are, the fewer trips each of them costs.
func (l *Limiter) fly(t *trip) {
	for t != nil {
		alarm := time.AfterFunc(l.cfg.Timeout, func() { l.overdue(t) })
		reply, err := l.script.trip(l.client, l.key, l.terms.args(t.ask))
		alarm.Stop()
		var a answer
		if err == nil {
			a, err = l.terms.read(reply)
		}

		woken := l.arrive(t, a, err)
		for _, p := range woken {
			p.told()
		}
		// Those who have just been answered mostly come right back: let them share the next trip and not the one after it. To
		// let half of a crowd travel while the other half works was no faster, and cost twice as many trips.
		runtime.Gosched()

		l.mu.Lock()
		l.woken = woken[:0]
		t = l.loadLocked()
		if l.trip = t; t == nil {
			close(l.landed)
			l.landed = nil
		}
		l.mu.Unlock()
	}
}

// arrive deals out what a trip has brought, and returns who is to be woken.
func (l *Limiter) arrive(t *trip, a answer, err error) []*place {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage.Trips++
	l.landing = true
	if err != nil {
		l.failedLocked(t, err)
	} else {
		l.landLocked(t, a)
	}
	l.landing = false
	t.callers, t.others = nil, nil // answered: who comes now is not behind them
	woken := l.woken
	l.woken = nil
	return woken
}

// loadLocked returns the next trip, or nil if there is nothing to ask.
func (l *Limiter) loadLocked() *trip {
	t := &trip{ask: ask{debt: exact.Mul(longestUS*2, l.terms.micros), pause: 2 * longestUS}}
	switch {
	case l.outage.Down:
		if !l.outage.probe {
			return nil
		}
		l.outage.probe = false
		t.ask.debt, t.ask.probe = exact.U128{}, true
	case l.outage.debt > 0 && (!l.outage.wrong || l.asking.count > 0):
		t.debt, l.outage.debt = l.outage.debt, 0
		t.ask.cost = l.terms.cost(t.debt)
		l.spareLocked(t) // before the charge buries it
	default:
		l.serveLocked()
		l.fillLocked(t)
		l.spareLocked(t)
		if len(t.callers) == 0 && len(t.others) == 0 && t.back == (span{}) {
			return nil
		}
	}
	t.sent = l.local()
	return t
}

// serveLocked gives what this process owns to those who are about to ask.
func (l *Limiter) serveLocked() {
	for p := l.asking.head; p != nil && l.need.Less(l.owned.total); p = l.asking.head {
		now := l.settleLocked()
		l.asking.remove(p)
		if !l.ownLocked(p, now) {
			l.asking.pushFront(p)
			return
		}
	}
}

// fillLocked takes along those who ask. The script decides about all of them at once, by one sum and one bound, which
// is the least slack that any of them has. When that says no, the answer tells how much is owed: see judge.
func (l *Limiter) fillLocked(t *trip) {
	now := l.local()
	for p := l.asking.head; p != nil; p = l.asking.head {
		if p.kind == hold {
			l.asking.remove(p)
			t.callers = append(t.callers, p)
			t.ask.hold = uint64(p.hold / time.Microsecond)
			return // who comes after a Pause is judged after it
		}
		l.asking.remove(p)
		if p.n == 0 || p.again {
			t.callers = append(t.callers, p)
			t.ask.cost = t.ask.cost.Add(l.terms.cost(p.n))
			continue
		}
		longest := l.longestWait(p, now)
		p.most = l.terms.span(longest)
		sum := t.ask.cost.Add(l.terms.cost(p.n))
		bound := l.terms.full.Add(p.most)
		if bound.Less(sum) {
			t.others = append(t.others, p)
			continue
		}
		t.callers = append(t.callers, p)
		t.ask.cost = sum
		t.ask.debt = exact.Least(t.ask.debt, bound.Sub(sum))
		t.ask.pause = min(t.ask.pause, uint64(longest/time.Microsecond))
	}
}

// longestWait returns how long p may wait.
func (l *Limiter) longestWait(p *place, now int64) time.Duration {
	if p.kind == try {
		return 0
	}
	return time.Duration(max(min(int64(l.cfg.Horizon), p.deadline-now), 0))
}

// spareLocked gives back what nobody here needs, if it is at the end of the debt. What lies before turns that another
// process owns stays for the next who comes, until it has passed: nobody else could use it lawfully.
func (l *Limiter) spareLocked(t *trip) {
	last := len(l.owned.spans) - 1
	if !l.known || last < 0 || l.owned.spans[last].hi != l.end || !l.need.Less(l.owned.total) {
		return
	}
	rest := l.owned.clone()
	floor := l.floor
	for p := l.line.head; p != nil; p = p.next {
		plan, ok := rest.plan(l.terms.cost(p.n), floor, l.terms.full)
		if !ok {
			return
		}
		rest.take(plan)
		floor = plan.at
		rest.clip(floor)
	}
	cut := l.owned.tail(l.end, rest.tail(l.end, rest.total))
	if cut == (exact.U128{}) {
		return
	}
	t.back = span{l.end.Sub(cut), l.end}
	t.ask.end, t.ask.back = l.end, cut
}

// failedLocked tells those on the trip that it failed. What it may have taken is nobody's, and passes by itself; what it
// gave back may be another's by now.
func (l *Limiter) failedLocked(t *trip, err error) {
	l.outage.debt = min(l.outage.debt+t.debt, l.shareOfBurst())
	answer := l.failLocked
	if isOutage(err) {
		l.downLocked(err)
	} else {
		if l.outage.Down {
			l.upLocked() // a Redis that answers is there, whatever it says
		}
		l.outage.wrong = true
		mistake := fmt.Errorf("cluster: the limit %q cannot be decided: %w; nothing was taken", l.cfg.Name, err)
		answer = func(p *place) { l.endLocked(p, refused, mistake) }
		if t.debt > 0 { // who waits for the charge would get the same answer
			for p := l.asking.head; p != nil; p = l.asking.head {
				l.asking.remove(p)
				answer(p)
			}
		}
	}
	for _, all := range [][]*place{t.callers, t.others} {
		for _, p := range all {
			if p.state == waiting {
				answer(p)
			}
		}
	}
}
