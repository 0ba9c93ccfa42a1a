package queue

import (
	"container/heap"
	"context"
	"time"

	"github.com/fadf4e53/sluice"
)

// lateCall is how long after its turn a called task is waited for before its call goes to another.
const lateCall = 5 * time.Second

// call stands in the limiter's line for the deferred tasks of one lane, one place at a time, and calls the first of them
// back when that place comes near. That keeps the limit busy whatever was late, cancelled or given back, where a timer
// for each task would wake it for a turn that has moved meanwhile. It ends when nobody is left to call.
func (g *Gate) call(ctx context.Context, l *lane) {
	for {
		p := g.first(ctx, l)
		if p == nil {
			return
		}
		if g.isAbroad(l) {
			g.callFreely(ctx, p)
			continue
		}
		turn, err := l.lim.Reserve(ctx, p.n)
		switch {
		case err == nil:
		case hopeless(err):
			g.drop(p) // it comes back by itself and fails with that error
			continue
		default:
			sleep(ctx, min(wanted(err), unknownWait))
			continue
		}
		if !g.near(ctx, l, turn, g.lead()) || !g.callNext(ctx, p, turn) {
			turn.Cancel()
		}
	}
}

// callNext calls the first of the lane, which was p, for a place that is near. false: nobody is there for it any more.
func (g *Gate) callNext(ctx context.Context, p *parked, turn sluice.Reservation) bool {
	slot := p.acquire(ctx, turn)
	if slot == nil && !g.mayCallMore(p.lane) {
		select {
		case p.srv.calls <- struct{}{}:
			slot = p.srv.calls
		case <-ctx.Done():
			return false
		}
		if turn.Delay() == 0 { // near once, and past: all calls were out
			<-slot
			return false
		}
	}
	if !g.summon(ctx, p.lane, p.n, turn, slot) {
		if slot != nil {
			<-slot
		}
		return false
	}
	return true
}

// first returns the task to call next. Without one the caller's work is done, and it is off the books when the lock is.
func (g *Gate) first(ctx context.Context, l *lane) *parked {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case len(l.waits) == 0:
	case ctx.Err() == nil:
		return l.waits[0]
	case g.run.Err() == nil: // Drain, and Configure before we saw it
		go g.call(g.run, l)
		return nil
	}
	l.calling = false
	g.forgetLocked(l)
	return nil
}

// drop takes a task out of the backlog: Asynq's forwarder brings it.
func (g *Gate) drop(p *parked) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.index >= 0 {
		heap.Remove(&p.lane.waits, p.index)
	}
}

func (g *Gate) lead() time.Duration {
	if w := g.cfg.MaxWait; w > 0 {
		return min(lead, w)
	}
	return lead
}

// near waits until a place comes near. It looks again and again, for those ahead may leave, and says false when the
// place is worth nothing.
func (g *Gate) near(ctx context.Context, l *lane, turn sluice.Reservation, lead time.Duration) bool {
	for {
		d := turn.Delay()
		g.keep(ctx, l, d)
		switch {
		case ctx.Err() != nil:
			return false
		case d == sluice.Never:
			sleep(ctx, unknownWait) // closed: do not spin
			return false
		case d <= lead:
			return true
		}
		sleep(ctx, min(d-lead, 100*time.Millisecond))
	}
}

// acquire waits for one of the calls that go to the head of the queue, as long as there is time to go to its tail
// instead. nil: there is none.
func (p *parked) acquire(ctx context.Context, turn sluice.Reservation) chan struct{} {
	select {
	case p.srv.calls <- struct{}{}:
		return p.srv.calls
	default:
	}
	timer := time.NewTimer(turn.Delay() - tailLead)
	defer timer.Stop()
	select {
	case p.srv.calls <- struct{}{}:
		return p.srv.calls
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// mayCallMore says whether a task may be called to the tail of its queue. As many may be out as start while an idle worker
// sleeps: at a high rate that is more than a share of the slots, and where the worker is not idle and they are stuck
// behind other work, the number bounds the places that are lost on them.
func (g *Gate) mayCallMore(l *lane) bool {
	rate := l.lim.Stats().Rate
	g.mu.Lock()
	defer g.mu.Unlock()
	return !rate.Valid() || int64(l.more) <= rate.UnitsIn(tailLead)
}

// summon calls the first task of the backlog and leaves the place for it; a nil one leaves it none. It says false if
// no task is there for it any more.
func (g *Gate) summon(ctx context.Context, l *lane, n int, turn sluice.Reservation, slot chan struct{}) bool {
	g.mu.Lock()
	if len(l.waits) == 0 || l.waits[0].n != n || g.draining {
		g.mu.Unlock()
		return false
	}
	p := heap.Pop(&l.waits).(*parked)
	p.called, p.slot, p.free = true, slot, turn == nil
	wait := arrival
	if !p.free {
		wait = turn.Delay()
		l.places = append(l.places, place{turn, n})
		l.claims++
	}
	l.out++
	if slot == nil {
		l.more++
	}
	end := time.Now().Add(wait + lateCall)
	p.expiry = time.AfterFunc(wait, func() { g.miss(ctx, p, end, arrival) })
	g.mu.Unlock()
	switch g.bring(ctx, p, slot != nil) {
	case busy: // deferred this moment, it may still be on its way into Asynq's books: others need not wait for it
		go g.bringSoon(ctx, p, slot != nil)
	case unreachable:
		sleep(ctx, unknownWait/4)
	}
	return true
}

// bring has Asynq put a task into its pending list.
func (g *Gate) bring(ctx context.Context, p *parked, first bool) answer {
	a := g.caller.pull(ctx, p.key, first)
	switch a {
	case gone:
		g.giveUp(p, false)
	case unreachable:
		g.giveUp(p, true)
	}
	return a
}

// bringSoon brings a task that Asynq is about to put away, half a millisecond mostly; else somebody runs it.
func (g *Gate) bringSoon(ctx context.Context, p *parked, first bool) {
	for try := 1; try < 50 && g.isOut(p) && time.Since(p.since) < time.Second; try++ {
		sleep(ctx, time.Duration(min(try, 10))*time.Millisecond)
		if g.bring(ctx, p, first) != busy {
			return
		}
	}
	g.giveUp(p, false)
}

func (g *Gate) isOut(p *parked) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.called
}

// giveUp ends the call of a task that did not come; again puts it back to the front of its backlog.
func (g *Gate) giveUp(p *parked, again bool) {
	g.mu.Lock()
	if !p.called {
		g.mu.Unlock()
		return
	}
	slot := p.uncallLocked()
	var spare sluice.Reservation
	if !p.free {
		p.lane.claims--
		spare = p.lane.spareLocked(p.n)
	}
	if again && !g.draining {
		g.queueLocked(p)
	} else {
		g.forgetLocked(p.lane)
	}
	g.mu.Unlock()
	if spare != nil {
		spare.Cancel()
	}
	if slot != nil {
		<-slot
	}
}
