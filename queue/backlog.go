package queue

import (
	"container/heap"
	"time"

	"github.com/fadf4e53/sluice"
)

// keepParked is how long a task that does not come back is remembered after it was due: another process has it, or
// somebody deleted it, or the queue before it is long.
const keepParked = 10 * time.Minute

// A parked task is one that was handed back and has not come again.
type parked struct {
	key   taskKey
	lane  *lane
	srv   *server
	n     int
	seq   uint64 // a task that is deferred again keeps its number, and so its place
	count int
	until time.Time // remembered so long
	index int       // in lane.waits; -1: it is not to be called

	// Once it was called:
	called bool
	place  sluice.Reservation // its turn, if it comes in time
	slot   chan struct{}      // the call to the head that it occupies; nil: it went to the tail
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

// parkLocked puts a task on the books, and into the backlog if it can be called.
func (g *Gate) parkLocked(t *turn, back time.Time) {
	if t.id == "" {
		return
	}
	if t.seq == 0 {
		g.seq++
		t.seq = g.seq
	}
	p := &parked{
		key: taskKey{t.queue, t.id}, lane: t.lane, srv: t.srv, n: t.n,
		seq: t.seq, count: t.count, until: back.Add(keepParked), index: -1,
	}
	g.parked[p.key] = p
	g.sweepLocked()
	if !g.callableLocked(t) {
		return
	}
	heap.Push(&t.lane.waits, p)
	if !t.lane.calling {
		t.lane.calling = true
		go g.call(g.run, t.lane)
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
		t.place, t.slot = p.uncallLocked()
		t.called = p.lane == t.lane && p.n == t.n
	}
	if p.lane != nil && p.lane != t.lane {
		g.forgetLocked(p.lane)
	}
}

// uncallLocked ends a call, whether the task came or not, and returns what it held.
func (p *parked) uncallLocked() (sluice.Reservation, chan struct{}) {
	place, slot := p.place, p.slot
	p.called, p.place, p.slot = false, nil, nil
	p.lane.out--
	if slot == nil {
		p.lane.more--
	}
	if p.expiry != nil {
		p.expiry.Stop()
	}
	return place, slot
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
