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
	var slot chan struct{} // kept from a place that came too late
	defer func() {
		if slot != nil {
			<-slot
		}
	}()
	for {
		p := g.first(ctx, l)
		if p == nil {
			return
		}
		place, err := l.lim.Reserve(ctx, p.n)
		if err != nil {
			if hopeless(err) {
				g.drop(p) // it comes back by itself and fails with that error
			} else {
				sleep(ctx, min(wanted(err), unknownWait))
			}
			continue
		}
		if slot != nil && place.Delay() > g.lead() {
			<-slot
			slot = nil
		}
		if !g.near(ctx, place) {
			place.Cancel()
			continue
		}
		if slot == nil {
			if slot = p.acquire(ctx); slot == nil {
				place.Cancel()
				continue
			}
			if g.missed(place) {
				place.Cancel() // it was near and is past: all calls were out. The slot is kept for the next place.
				continue
			}
		}
		if !g.summon(l, p.n, place, slot) {
			place.Cancel()
			continue
		}
		slot = nil
	}
}

// first returns the task to call next. Without one the caller's work is done, and it is off the books when the lock is.
func (g *Gate) first(ctx context.Context, l *lane) *parked {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(l.waits) > 0 && ctx.Err() == nil {
		return l.waits[0]
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
func (g *Gate) near(ctx context.Context, place sluice.Reservation) bool {
	for {
		d := place.Delay()
		switch {
		case ctx.Err() != nil:
			return false
		case d == sluice.Never:
			sleep(ctx, unknownWait) // closed: do not spin
			return false
		case d <= g.lead():
			return true
		}
		sleep(ctx, min(d-g.lead(), 100*time.Millisecond))
	}
}

// missed says whether a place that was near has passed while its task could not be called.
func (g *Gate) missed(place sluice.Reservation) bool { return place.Delay() == 0 }

// acquire waits for a call to be free: called tasks may hold only part of the slots. nil: ctx ended.
func (p *parked) acquire(ctx context.Context) chan struct{} {
	select {
	case p.srv.calls <- struct{}{}:
		return p.srv.calls
	case <-ctx.Done():
		return nil
	}
}

// summon calls the first task of the backlog and leaves the place for it. It says false if none is there for it any more.
func (g *Gate) summon(l *lane, n int, place sluice.Reservation, slot chan struct{}) bool {
	g.mu.Lock()
	if len(l.waits) == 0 || l.waits[0].n != n || g.draining {
		g.mu.Unlock()
		return false
	}
	p := heap.Pop(&l.waits).(*parked)
	p.called, p.place, p.slot = true, place, slot
	l.out++
	p.expiry = time.AfterFunc(place.Delay()+lateCall, func() { g.giveUp(p, false) })
	ctx := g.run
	g.mu.Unlock()
	g.bring(ctx, p)
	return true
}

// bring has Asynq put a task into its pending list. A task that was deferred this moment may still be on its way into
// Asynq's books, half a millisecond mostly.
func (g *Gate) bring(ctx context.Context, p *parked) {
	for try := range 50 {
		switch g.caller.pull(ctx, p.key) {
		case pulled:
			return
		case gone:
			g.giveUp(p, false)
			return
		case unreachable:
			g.giveUp(p, true)
			sleep(ctx, unknownWait/4)
			return
		}
		if !g.isOut(p) {
			return
		}
		sleep(ctx, time.Duration(min(try+1, 10))*time.Millisecond)
	}
	g.giveUp(p, false) // somebody else runs it
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
	place, slot := p.uncallLocked()
	if again && !g.draining {
		heap.Push(&p.lane.waits, p)
	} else {
		g.forgetLocked(p.lane)
	}
	g.mu.Unlock()
	place.Cancel()
	<-slot
}

// Drain hands back at once, and due at once, what waits in place, and calls nothing back any more: srv.Stop();
// gate.Drain(); srv.Shutdown() takes milliseconds. A task on its last attempt keeps its slot until Asynq puts it back
// unharmed at the end of ShutdownTimeout. Tasks that come after Drain and are limited are handed back too, until the
// next Configure. Drain does not wait for the tasks to be gone; Shutdown does. On a nil Gate it does nothing.
func (g *Gate) Drain() {
	if g == nil || g.lanes == nil {
		return
	}
	g.mu.Lock()
	g.draining = true
	g.halt()
	var leave []context.CancelFunc
	for _, cancel := range g.stands {
		if cancel != nil {
			leave = append(leave, cancel)
		}
	}
	var out []*parked
	for _, p := range g.parked {
		if p.called {
			out = append(out, p)
		}
	}
	for _, l := range g.lanes {
		for _, p := range l.waits {
			p.index = -1
		}
		l.waits = nil
	}
	g.mu.Unlock()

	for _, cancel := range leave {
		cancel()
	}
	for _, p := range out {
		g.giveUp(p, false)
	}
	if g.caller != nil {
		g.caller.close()
	}
}
