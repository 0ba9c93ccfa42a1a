package keyed

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
)

const (
	// patience bounds how long one call looks for a key at rest: some thousand keys in memory, or one in Redis.
	patience = int64(time.Millisecond)
	// soon is when a call that runs is taken to be over; nobody can know.
	soon = int64(time.Millisecond)
	// outage is when a limiter that answered with an error is asked again.
	outage = int64(time.Second)
)

// A search is one call's way to room for a new key.
type search struct {
	begun bool
	since int64
	force bool // a busy key may be dropped
}

// A find is what roomLocked has found.
type find[K comparable] struct {
	what  found
	e     *entry[K] // look, victim
	left  int32     // look: as it was when the question was put; so are these two
	used  int64
	last  sluice.Reservation
	after int64 // full: when it is worth to ask again
}

type found int

const (
	room   found = iota // there is room
	look                // e must be asked first: call m.look, then begin anew
	victim              // Oldest: e may be dropped
	full                // all are busy
)

func (m *Map[K]) roomLocked(s *search) find[K] {
	if m.held < m.cfg.MaxKeys {
		return find[K]{what: room}
	}
	now := m.now()
	if !s.begun {
		s.begun, s.since = true, now
		m.turnHandLocked()
	}
	top := m.byRest.top()
	inTime := now-s.since <= patience
	if top != nil && inTime && (top.at[byRest] <= s.since || !top.fresh) {
		return m.askLocked(top)
	}
	if m.cfg.Evict == Oldest && s.force {
		if e := m.oldestLocked(); e != nil && e.free {
			return find[K]{what: victim, e: e}
		} else if e != nil {
			return m.askLocked(e)
		}
	}
	after := soon
	if top != nil && inTime {
		next := max(top.at[byRest]-now, 1)
		if len(m.byRest.list) == m.held {
			after = next
		} else {
			after = min(after, next) // the others are parked or being made
		}
	}
	return find[K]{what: full, after: after}
}

// turnHandLocked has one key asked that has told a later time: its limit may have been changed from outside since.
func (m *Map[K]) turnHandLocked() {
	if n := len(m.byRest.list); n > 0 {
		m.hand = (m.hand + 1) % n
		m.byRest.set(m.byRest.list[m.hand], 0)
	}
}

// oldestLocked returns the least recently used key that may be dropped. If it is not free, it must be asked first.
func (m *Map[K]) oldestLocked() *entry[K] {
	for {
		e := m.byUse.top()
		switch {
		case e == nil:
			return nil
		case e.at[byUse] != e.used:
			m.byUse.set(e, e.used)
		case !m.parkLocked(&m.byUse, e):
			return e
		}
	}
}

func (m *Map[K]) askLocked(e *entry[K]) find[K] {
	f := find[K]{what: look, e: e, left: e.left, used: e.used, last: e.last}
	if e.pinned() {
		f.used = -1 // what runs can change all that is told
	}
	return f
}

// look asks a key whether it is at rest, and drops it if it is. It runs outside mu, since a limiter may take its time
// to answer; whatever happened to the key meanwhile makes the answer worth less.
func (m *Map[K]) look(ctx context.Context, f find[K]) error {
	e, now := f.e, m.now()
	d, err := e.lim.Try(ctx, 0)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	told := int64(d.ResetAfter)
	if err != nil {
		told = outage
	}
	waiting := false
	if m.cfg.Evict == Oldest {
		waiting = e.lim.Stats().Waiting > 0
	}
	next := told
	if waiting && f.last != nil {
		if turn := int64(f.last.Delay()); turn > 0 {
			next = min(next, turn) // then nobody waits any more
		}
	}
	if m.learn(f, waiting, told, later(now, next)) {
		_ = shut(e.lim) // who made room has nobody to tell
	}
	return nil
}

// learn writes down what a key told, and says whether it was dropped.
func (m *Map[K]) learn(f find[K], waiting bool, told, next int64) bool {
	e := f.e
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.dead {
		return false
	}
	same := e.used == f.used // and so no call has begun since, and none was running
	if told == 0 && !waiting {
		switch {
		case same:
			m.dropLocked(e)
			return true
		case m.byRest.has(e) && !m.parkLocked(&m.byRest, e):
			return false // a call was running and is over: ask anew
		}
	}
	switch {
	case !waiting:
		if e.free = same; same {
			e.last = nil
		}
		if e.pins.Load()&parked == 0 {
			m.droppableLocked(e)
		}
	case !m.parkLocked(&m.byUse, e): // a caller who waits comes back; a Reservation need not
		m.byUse.remove(e)
	}
	if m.byRest.has(e) && e.left == f.left {
		e.fresh = true
		m.byRest.set(e, next)
	}
	return false
}

// later returns the instant d after now, or the end of time.
func later(now, d int64) int64 {
	if d > int64(sluice.Never)-now {
		return int64(sluice.Never)
	}
	return now + max(d, 1)
}
