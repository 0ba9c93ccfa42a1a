// Package line is the engine under waiter and leaky: who waits, in which order, until when.
//
// A Line is one exact.Bucket behind a mutex, a FIFO of places, and one timer that is armed for the next turn while
// somebody sleeps. Turns are not stored but computed from the bucket and the units ahead, so whatever changes (a
// caller leaves, the rate is set, a pause begins) moves everybody at once and costs nothing to move.
//
// A waiter grants n units when the bucket holds n. A pacer's bucket stands for the room that is not water: it
// grants when the bucket is full, that is, when all the water poured before has run out. This is all in which the
// two differ, but for what Try means.
package line

import (
	"math"
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// Config is what New needs. The packages that make a Line check the values that are theirs to explain.
type Config struct {
	Rate       sluice.Rate
	Burst      int
	Pacer      bool // grant when full, and let Try take a place in the future
	Empty      bool
	MaxWait    time.Duration
	MaxWaiters int
	Oversize   bool
	Strict     bool
	Now        func() time.Time
}

// A Line makes callers wait their turn. A nil Line refuses everything with ErrInvalid.
type Line struct {
	name string // of the package that made it: errors begin with it
	cfg  Config // but for Rate and Burst, which are guarded by mu
	base time.Time

	mu     sync.Mutex
	bucket exact.Bucket
	head   *place
	tail   *place
	units  exact.U128 // of all who stand in the line
	count  int        // of all who stand in the line
	paused int64      // nothing is granted before

	slots slots // starts that Try has told, in order of time; only in a pacer

	// The timer is made when somebody first sleeps, and runs only while somebody does.
	timer    *time.Timer
	armed    int64 // the turn it is armed for, or unarmed
	sleepers int

	late  late         // the credit for our own late timer
	held  *place       // Strict: granted, and not seen to run yet
	peaks exact.Peaks  // what reservations may give back after their turn
	stats sluice.Stats // only its counters
	shut  bool

	spare sync.Pool // *place; one pool a Line, since channels must not cross synctest bubbles
}

// A place is where a caller stands.
type place struct {
	prev, next *place
	n          int
	joined     int64
	turn       int64      // told: when it starts; granted: when its turn was
	over       exact.U128 // told: what the bucket holds beyond full at its turn, a fraction of a nanosecond's worth
	mark       uint64
	state      state
	kept       bool          // belongs to a Reservation: never reused, and can be cancelled after its turn
	report     bool          // whoever is woken must look in: see late and Strict
	asleep     int           // how many sleep on it
	wake       chan struct{} // of one who sleeps: sent to; of a Reservation: closed
}

type state uint8

const (
	waiting state = iota // in the line
	told                 // Try has promised it a turn
	granted
	left
	closed
)

// New returns a Line. Its errors begin with name.
func New(name string, cfg Config) *Line {
	// No pause holds, whatever the clock says: it may run back to before now.
	l := &Line{name: name, cfg: cfg, armed: unarmed, paused: math.MinInt64, late: late{until: math.MinInt64}}
	n, d := cfg.Rate.Fraction()
	l.bucket = exact.NewBucket(uint64(n), uint64(d), uint64(cfg.Burst))
	if cfg.Empty {
		l.bucket.Empty()
	}
	if cfg.Now != nil {
		l.base = cfg.Now()
	} else {
		l.base = time.Now()
	}
	return l
}

// nowLocked returns the time since base. It is read under mu so that no older reading can come in after a newer one.
func (l *Line) nowLocked() int64 {
	if l.cfg.Now != nil {
		return int64(l.cfg.Now().Sub(l.base))
	}
	return int64(time.Since(l.base))
}

func (l *Line) joinLocked(p *place) {
	p.prev, p.state = l.tail, waiting
	if l.tail != nil {
		l.tail.next = p
	} else {
		l.head = p
	}
	l.tail = p
	l.units = l.units.Add(exact.U128{Lo: uint64(p.n)})
	l.count++
}

func (l *Line) unlinkLocked(p *place) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.head = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.tail = p.prev
	}
	p.prev, p.next = nil, nil
	l.units = l.units.Sub(exact.U128{Lo: uint64(p.n)})
	l.count--
}

// leaveLocked takes p out of the line. All behind move up at once.
func (l *Line) leaveLocked(p *place, now int64) {
	if p.state == told {
		l.slots.remove(p)
		l.stats.Units -= uint64(p.n) // counted when it was told
	} else {
		l.unlinkLocked(p)
	}
	l.slots.holed = len(l.slots.list) > 0
	l.endLocked(p, left)
	// What gathered for a large head is more than a small one may find.
	l.bucket.Clip(l.limitLocked())
	l.settleLocked(now)
	l.armLocked(now)
}

// endLocked gives p its last state and wakes who sleeps on it.
func (l *Line) endLocked(p *place, s state) {
	p.state = s
	if p.asleep == 0 {
		return
	}
	l.sleepers -= p.asleep
	p.asleep = 0
	if p.kept {
		close(p.wake)
	} else {
		p.wake <- struct{}{} // has room for one, and is sent to once
	}
}
