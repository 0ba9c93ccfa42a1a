package keyed

import (
	"sync/atomic"

	"github.com/fadf4e53/sluice"
)

// An entry is what the Map knows of a key: 112 bytes with a string for a key, which is why the flags stand together.
type entry[K comparable] struct {
	key    K
	lim    sluice.Limiter
	making *making            // until lim is there
	last   sluice.Reservation // Oldest: the last one made, which is the last to have its turn
	at     [2]int64           // where it stands in the heaps
	pos    [2]int             // -1: not in that heap
	used   int64              // the number of its last use
	pins   atomic.Int32       // calls that run, and the bit parked. Goes up under mu only.
	left   int32              // how often somebody gave up: rest may then come sooner than was told
	fresh  bool               // was asked since the last use, so that at[byRest] is when it comes to rest
	free   bool               // was found without waiters since the last use
	dead   bool               // is not in the Map any more
}

// parked in pins says that the entry is out of a heap until the last call is over.
const parked = 1 << 30

func (e *entry[K]) pinned() bool { return e.pins.Load()&^parked > 0 }

// useLocked begins a call for e.
func (m *Map[K]) useLocked(e *entry[K]) {
	m.uses++
	e.used, e.fresh, e.free = m.uses, false, false
	e.pins.Add(1)
}

// again begins a call for an entry at hand, which may have been dropped meanwhile.
func (m *Map[K]) again(e *entry[K]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.useLocked(e)
}

// release ends a call for e. It takes no lock, since it is half of what a call for a hot key costs.
func (m *Map[K]) release(e *entry[K]) {
	if e.pins.Add(-1) == parked {
		m.unpark(e)
	}
}

// parkLocked takes a pinned entry out of a heap, on whose top it would only be in the way; it says whether e was still
// pinned.
func (m *Map[K]) parkLocked(h *lazyHeap[K], e *entry[K]) bool {
	for {
		pins := e.pins.Load()
		if pins&^parked == 0 {
			return false
		}
		if e.pins.CompareAndSwap(pins, pins|parked) {
			h.remove(e)
			return true
		}
	}
}

// unpark puts e back into the heaps, unless a new call has begun, whose release will.
func (m *Map[K]) unpark(e *entry[K]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !e.pins.CompareAndSwap(parked, 0) || e.dead {
		return
	}
	if !m.byRest.has(e) {
		m.byRest.push(e, 0)
	}
	m.droppableLocked(e)
}

// droppableLocked puts e among the keys that Oldest may drop.
func (m *Map[K]) droppableLocked(e *entry[K]) {
	if m.cfg.Evict == Oldest && !m.byUse.has(e) {
		m.byUse.push(e, e.used)
	}
}

// sooner says that e may be at rest before the time it told, since somebody gave up what he held.
func (m *Map[K]) sooner(e *entry[K]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.left++
	if !e.dead && m.byRest.has(e) {
		m.byRest.set(e, 0)
	}
}

// dropLocked forgets e. Its limiter is for the caller to shut, outside mu.
func (m *Map[K]) dropLocked(e *entry[K]) {
	delete(m.keys, e.key)
	m.byRest.remove(e)
	m.byUse.remove(e)
	e.dead = true
	m.held--
	m.stats.Dropped++
}
