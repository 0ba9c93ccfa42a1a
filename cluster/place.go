package cluster

import (
	"math"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// A place is a call: in the queue of those who ask Redis, then in the line of those who own a turn.
type place struct {
	prev, next *place
	in         *queue

	kind     kind
	n        int
	joined   int64 // by our clock
	deadline int64 // by our clock; the turn must not come later
	hold     time.Duration

	most  exact.U128 // the longest wait that Redis may grant, as it was when the trip began
	again bool       // had a turn before a pause, and is not refused any more

	state    state
	err      error // why it was not granted
	decision sluice.Decision
	fallback *fallback // where to ask instead: Redis is out
	used     []span    // what a grant that can be cancelled used
	kept     bool      // belongs to a Reservation: can be cancelled after its turn
	open     bool      // let go by FailOpen: has used nothing
	// wake is closed when a Reservation is answered, since many may sleep on that; to any other place one token is sent.
	wake   chan struct{}
	stood  chan struct{} // of a Reservation: closed when it stands in line, or is answered
	stands bool
	shared bool // a trip under way may still look at it: not to be used again
}

type kind uint8

const (
	wait kind = iota // Wait and Reserve
	try              // Try; n == 0 only looks
	hold             // Pause
)

type state uint8

const (
	waiting state = iota
	granted
	refused // answered with err
	closed
	left // gave up
)

func newPlace(k kind, n int) *place {
	return &place{kind: k, n: n, wake: make(chan struct{}, 1)}
}

// newKept makes the place of a Reservation.
func newKept(k kind, n int) *place {
	p := newPlace(k, n)
	p.kept, p.stood, p.deadline = true, make(chan struct{}), math.MaxInt64
	return p
}

// told wakes who sleeps on p.
func (p *place) told() {
	if p.kept {
		close(p.wake)
	} else {
		p.wake <- struct{}{} // has room for one, and is sent to once
	}
}

// stand tells who reserves that p has a place.
func (p *place) stand() {
	if p.stood != nil && !p.stands {
		p.stands = true
		close(p.stood)
	}
}

// await blocks until p is answered, or says false when done is.
func (p *place) await(done <-chan struct{}) bool {
	if done == nil { // half the cost
		<-p.wake
		return true
	}
	select {
	case <-p.wake:
		return true
	case <-done:
		return false
	}
}

// A queue is first in, first out, and lets go anywhere.
type queue struct {
	head, tail *place
	count      int
}

func (q *queue) push(p *place) {
	p.in, p.prev, p.next = q, q.tail, nil
	if q.tail != nil {
		q.tail.next = p
	} else {
		q.head = p
	}
	q.tail = p
	q.count++
}

func (q *queue) pushFront(p *place) {
	p.in, p.prev, p.next = q, nil, q.head
	if q.head != nil {
		q.head.prev = p
	} else {
		q.tail = p
	}
	q.head = p
	q.count++
}

func (q *queue) remove(p *place) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		q.head = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		q.tail = p.prev
	}
	p.in, p.prev, p.next = nil, nil, nil
	q.count--
}

// waiting counts those who wait for a turn.
func (q *queue) waiting() int {
	n := 0
	for p := q.head; p != nil; p = p.next {
		if p.kind == wait {
			n++
		}
	}
	return n
}
