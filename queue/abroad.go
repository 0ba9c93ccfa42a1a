package queue

import (
	"context"
	"errors"
	"time"
)

// Several processes may serve one queue. A task that one has deferred and called is delivered to any of them, and a place
// that was held for it here is of no use there: it passes the limiter of the process to which it comes, as the law wants it.
// So where tasks are seen to go astray the Gate holds no places any more. It calls a task whenever too few wait or are on
// their way here, and each process having one in the limiter's line, the limit does not stand idle.

const (
	// arrival is how long a called task may take, until it is asked where it is: an idle worker sleeps up to 75 ms.
	arrival = 100 * time.Millisecond

	// abroadFor is how long one stray task makes a lane hold no places.
	abroadFor = 30 * time.Second
)

// calledElsewhere says whether a task that is about to be handed back for want of a turn was called by another process. It
// costs a Redis command for each deferral.
func (g *Gate) calledElsewhere(t *turn, refused error) bool {
	switch {
	case g.caller == nil || t.called || t.id == "" || !t.lane.shared || t.hurried():
		return false
	case t.ctx.Err() != nil || hopeless(refused) || errors.Is(refused, errDrained):
		return false
	}
	if !g.caller.unmark(t.ctx, taskKey{t.queue, t.id}) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	t.called, t.asked, t.guest = true, true, true
	t.lane.abroad = time.Now().Add(abroadFor)
	return true
}

func (g *Gate) isAbroad(l *lane) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(l.abroad)
}

// callFreely calls p, or waits until it is to be called. It holds no place for it.
func (g *Gate) callFreely(ctx context.Context, p *parked) {
	l := p.lane
	rate := l.lim.Stats().Rate
	g.mu.Lock()
	busy := l.standing + l.out
	g.mu.Unlock()
	var step time.Duration
	enough := 1
	if rate.Valid() {
		step = rate.TimeFor(int64(p.n))
		// Half the slots, for the others call as many and any of us may get them all; more only at rates at which they
		// would all have started before an idle worker looks.
		within := func(d time.Duration) int { return int(min(rate.UnitsIn(d), 1<<20)) / max(1, p.n) }
		enough += min(within(g.lead()), max(p.srv.slots/2-1, within(g.lead()/3)))
	}
	g.keep(ctx, l, time.Duration(busy)*step)
	if busy >= enough || !g.callOne(ctx, p) {
		l.await(ctx, arrival)
	}
}

// callOne calls p, to the head of its queue or else to the tail, and says false if it may not now.
func (g *Gate) callOne(ctx context.Context, p *parked) bool {
	select {
	case p.srv.calls <- struct{}{}:
		if !g.summon(ctx, p.lane, p.n, nil, p.srv.calls) {
			<-p.srv.calls
		}
		return true
	default:
		return g.mayCallMore(p.lane) && g.summon(ctx, p.lane, p.n, nil, nil)
	}
}

// miss is what happens when a called task has not come by its turn.
func (g *Gate) miss(ctx context.Context, p *parked, end time.Time, again time.Duration) {
	if ctx.Err() != nil || !g.isOut(p) {
		return
	}
	if time.Now().After(end) {
		g.giveUp(p, false)
		return
	}
	if g.caller.elsewhere(ctx, p.key) {
		sleep(ctx, 20*time.Millisecond) // it may be on its way from Asynq to us
		if !g.isOut(p) {
			return
		}
		g.mu.Lock()
		p.lane.abroad = time.Now().Add(abroadFor)
		g.mu.Unlock()
		g.giveUp(p, false)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.called {
		p.expiry = time.AfterFunc(again, func() { g.miss(ctx, p, end, 2*again) })
	}
}

// kick tells the lane's caller that somebody has come or gone.
func (l *lane) kick() {
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *lane) await(ctx context.Context, atMost time.Duration) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case <-l.news:
	case <-timer.C:
	case <-ctx.Done():
	}
}
