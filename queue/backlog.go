package queue

import (
	"container/heap"
	"slices"
	"time"

	"github.com/fadf4e53/sluice"
)

// keepParked is how long a task that does not come back is remembered after it was due: another process has it, or
// somebody deleted it, or the queue before it is long.
const keepParked = 10 * time.Minute

// A parked task is one that was handed back and has not come again.
type parked struct {
	key    taskKey
	lane   *lane
	srv    *server
	n      int
	seq    uint64 // a task that is deferred again keeps its number, and so its place
	count  int
	place  time.Time // in the virtual queue
	due    time.Time // in Asynq's books
	latest time.Time // the due time that its Deadline allows; zero: it has none
	since  time.Time // when it was handed back
	until  time.Time // remembered so long
	index  int       // in lane.waits; -1: it is not to be called

	// Once it was called:
	called bool
	slot   chan struct{} // the call to the head that it occupies; nil: it went to the tail
	free   bool          // no place is held for it: it may come elsewhere
	expiry *time.Timer
}

// A backlog is a heap of parked tasks: the one that was deferred first is called first.
type backlog []*parked

func (b backlog) Len() int           { return len(b) }
func (b backlog) Less(i, j int) bool { return b[i].seq < b[j].seq }
func (b backlog) Swap(i, j int)      { b[i], b[j] = b[j], b[i]; b[i].index, b[j].index = i, j }
func (b *backlog) Push(x any)        { p := x.(*parked); p.index = len(*b); *b = append(*b, p) }
func (b *backlog) Pop() any {
	old := *b
	p := old[len(old)-1]
	old[len(old)-1] = nil
	*b = old[:len(old)-1]
	p.index = -1
	return p
}

// ahead says whether somebody was deferred before the task with this number; a task without one comes after all.
func (b backlog) ahead(seq uint64) bool { return len(b) > 0 && (seq == 0 || b[0].seq < seq) }

// callableLocked says whether t, handed back, can be called when its turn comes.
func (g *Gate) callableLocked(t *turn) bool {
	return g.caller != nil && t.lane.shared && t.srv != nil && t.id != "" && !g.draining
}

// parkLocked puts a task on the books, and into the backlog if it can be called. Its turn is expected at place, and
// Asynq's forwarder is to bring it at due.
func (g *Gate) parkLocked(t *turn, place, due, latest time.Time) {
	if t.id == "" {
		return
	}
	if t.seq == 0 {
		g.seq++
		t.seq = g.seq
	}
	p := &parked{
		key: taskKey{t.queue, t.id}, lane: t.lane, srv: t.srv, n: t.n,
		seq: t.seq, count: t.count, index: -1,
		place: place, due: due, latest: latest, since: time.Now(), until: due.Add(keepParked),
	}
	g.parked[p.key] = p
	g.sweepLocked()
	if !g.callableLocked(t) {
		return
	}
	g.queueLocked(p)
}

// queueLocked puts a task into its lane's backlog, and sees to it that somebody calls.
func (g *Gate) queueLocked(p *parked) {
	heap.Push(&p.lane.waits, p)
	if !p.lane.calling {
		p.lane.calling = true
		go g.call(g.run, p.lane)
	}
}

// takeLocked takes a task that came back off the books and hands what was kept for it to its turn.
func (g *Gate) takeLocked(p *parked, t *turn) {
	delete(g.parked, p.key)
	t.count, t.seq = p.count, p.seq
	if p.index >= 0 {
		heap.Remove(&p.lane.waits, p.index)
	}
	if p.called {
		t.called, t.slot = true, p.uncallLocked()
		switch {
		case p.free:
			t.asked = true
		case p.lane != t.lane: // Route has changed its mind
			t.asked = true
			p.lane.claims--
			t.spare = p.lane.spareLocked(p.n)
		}
	}
	if p.lane != nil && p.lane != t.lane {
		g.forgetLocked(p.lane)
	}
}

// uncallLocked ends a call, whether the task came or not, and returns what it occupied.
func (p *parked) uncallLocked() chan struct{} {
	slot := p.slot
	p.called, p.slot = false, nil
	p.lane.out--
	p.lane.kick()
	if slot == nil {
		p.lane.more--
	}
	if p.expiry != nil {
		p.expiry.Stop()
	}
	return slot
}

// A place is a turn that is held for tasks that were called and have not come yet.
type place struct {
	sluice.Reservation
	n int
}

// placeFor returns the first place of the lane that a task which was called can still use. The places are not the tasks'
// own: who comes late takes the next one and not a new one behind all that are held, for it would hold its worker slot so
// long that those who are to use them find none. A place that is past is worth nothing: to start on it now would put two
// turns into one. It goes back.
func (g *Gate) placeFor(t *turn) sluice.Reservation {
	l := t.lane
	g.mu.Lock()
	l.claims--
	g.mu.Unlock()
	for {
		g.mu.Lock()
		i := slices.IndexFunc(l.places, func(p place) bool { return p.n == t.n })
		if i < 0 {
			spare := l.spareLocked(t.n)
			g.mu.Unlock()
			if spare != nil { // its Cost is another now
				spare.Cancel()
			}
			return nil
		}
		p := l.places[i]
		l.places = slices.Delete(l.places, i, i+1)
		g.mu.Unlock()
		if p.Delay() > 0 {
			return p
		}
		p.Cancel()
	}
}

// spareLocked takes away a place that nobody has a claim to any more, now that a task of n units does not ask for it.
func (l *lane) spareLocked(n int) sluice.Reservation {
	if len(l.places) <= l.claims {
		return nil
	}
	i := len(l.places) - 1
	for i > 0 && l.places[i].n != n {
		i--
	}
	spare := l.places[i]
	l.places = slices.Delete(l.places, i, i+1)
	return spare
}

// sweepLocked forgets tasks that never came back, when their number has doubled since it last looked.
func (g *Gate) sweepLocked() {
	if len(g.parked) < max(g.sweepAt, 1024) {
		return
	}
	now := time.Now()
	for key, p := range g.parked {
		if p.index < 0 && !p.called && now.After(p.until) {
			delete(g.parked, key)
		}
	}
	g.sweepAt = 2 * len(g.parked)
}
