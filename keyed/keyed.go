package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
)

// Eviction says what happens to a new key when MaxKeys are there and none of them is at rest.
type Eviction int

const (
	// IdleOnly refuses the new key with ErrFull: no key is dropped before it is at rest.
	IdleOnly Eviction = iota
	// Oldest drops the least recently used busy key without waiters, and forgets what it owes.
	Oldest
)

// Config is what New needs.
type Config[K comparable] struct {
	// New makes the limiter of a new key. The Map owns it, and closes it when the key is dropped if it has a
	// Close() error; a limiter that several keys share must therefore be given without one, as
	// struct{ sluice.Limiter }{shared}. What was changed on it, such as its rate, is lost when the key is dropped.
	//
	// Calls for the key wait for New, those for other keys do not; so it should be quick, and must not ask the Map
	// for the same key. Its error is that of the call, and is not remembered. Required.
	New func(key K) (sluice.Limiter, error)
	// MaxKeys is how many keys there can be. Required, at least 1.
	MaxKeys int
	// Evict says what happens when all keys are busy. Default: IdleOnly.
	Evict Eviction
}

// A Map holds one limiter for each key, and at most MaxKeys of them.
//
// A call for a key goes to the key's limiter and means what it means there. The limiter is made when the key is first
// used, dropped when room is needed (see the package comment), and made anew when the key comes back. One key never has
// two limiters: none is made before its predecessor is out of use. A key is in use, and cannot be dropped, while a call
// for it runs and while a Reservation of it waits for its turn.
//
// A new key that finds no room is refused as by a full line: Wait, Reserve and Pause return a *sluice.Refusal for
// ErrFull, Try a Decision that is not Allowed. Wait does not wait for room.
//
// The zero Map and a nil one refuse everything with ErrInvalid: call New. A key that is not equal to itself (NaN), or
// that holds something that Go cannot compare (a slice in an interface), could never be found again: it is ErrInvalid
// and takes no room. Any number of goroutines may share a Map. It has no goroutine and no timer of its own.
//
// If ctx ends while a call waits, the key's limiter decides as it does without the Map. ctx also bounds the wait for
// another goroutine's Config.New, and the questions that are put to other keys for room.
//
// Not promised: that Try returns at once where Config.New or the limiters themselves do not; the counters of a key
// beyond its being dropped.
type Map[K comparable] struct {
	cfg    Config[K]
	base   time.Time
	odd    bool            // K has values that cannot be keys
	life   context.Context // ends with Close
	finish context.CancelFunc

	mu     sync.Mutex // guards everything below, and the entries. No foreign code runs under it.
	keys   map[K]*entry[K]
	held   int         // of MaxKeys
	uses   int64       // the number of the last use
	byRest lazyHeap[K] // when a look at the key may be worth it
	byUse  lazyHeap[K] // Oldest: keys that may be dropped, by their last use
	hand   int         // the one more that is looked at
	closed bool
	stats  Stats // only its counters
}

// Stats is a snapshot of a Map.
type Stats struct {
	Keys    int    // that have a limiter now
	Dropped uint64 // keys dropped to make room
	Refused uint64 // calls refused because there was no room for their key
}

// New returns a Map, or an error that names the field, its value and the rule.
func New[K comparable](c Config[K]) (*Map[K], error) {
	invalid := func(field string, value any, rule string) error {
		return fmt.Errorf("keyed: Config.%s is %v: %s: %w", field, value, rule, sluice.ErrInvalid)
	}
	switch {
	case c.New == nil:
		return nil, invalid("New", "nil", "must make the limiter of a key")
	case c.MaxKeys < 1:
		return nil, invalid("MaxKeys", c.MaxKeys, "must be at least 1")
	case c.Evict != IdleOnly && c.Evict != Oldest:
		return nil, invalid("Evict", int(c.Evict), "must be IdleOnly or Oldest")
	}
	m := &Map[K]{cfg: c, base: time.Now(), odd: hasOddValues[K](), keys: make(map[K]*entry[K])}
	m.byRest.order, m.byUse.order = byRest, byUse
	m.life, m.finish = context.WithCancel(context.Background())
	return m, nil
}

// For returns the limiter of a key, as a view: it holds nothing and makes nothing until it is used, and stays right when
// the key is dropped and comes back. Views of equal keys of one Map are ==, so that a view can be the identity of its
// key's limit. It is a sluice.TryReserver too.
func (m *Map[K]) For(key K) sluice.Limiter { return m.view(key) }

// Wait blocks until n units of the key may go. See sluice.Limiter.
func (m *Map[K]) Wait(ctx context.Context, key K, n int) error { return m.view(key).Wait(ctx, n) }

// Try takes n units of the key if they can be had now. See sluice.Limiter.
func (m *Map[K]) Try(ctx context.Context, key K, n int) (sluice.Decision, error) {
	return m.view(key).Try(ctx, n)
}

// Len returns how many keys there are: at most MaxKeys, and none once the Map is closed.
func (m *Map[K]) Len() int { return m.Stats().Keys }

// Stats returns a snapshot. Of a nil Map it is zero.
func (m *Map[K]) Stats() Stats {
	if m == nil {
		return Stats{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Keys = m.held
	return s
}

// Close wakes all who wait, for whatever key, with ErrClosed, and every later call returns it. A turn that came before
// stands. It closes the limiters that can be closed and returns their errors, joined. Again is a no-op.
func (m *Map[K]) Close() error {
	if m == nil || m.cfg.New == nil {
		return m.unmade("Close")
	}
	var errs []error
	for _, l := range m.endAll() {
		if err := shut(l); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("keyed: Close: %w", err)
	}
	return nil
}

// endAll empties the Map, and returns the limiters that were in it.
func (m *Map[K]) endAll() []sluice.Limiter {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finish()
	m.closed = true
	var all []sluice.Limiter
	for _, e := range m.keys {
		if e.dead = true; e.making == nil {
			all = append(all, e.lim)
		}
	}
	m.keys, m.held, m.byRest.list, m.byUse.list = nil, 0, nil, nil
	return all
}

// shut closes what can be closed.
func shut(l sluice.Limiter) error {
	if c, ok := l.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (m *Map[K]) unmade(call string) error {
	return fmt.Errorf("keyed: %s on a Map that New did not make: %w", call, sluice.ErrInvalid)
}

// now is the time since base.
func (m *Map[K]) now() int64 { return int64(time.Since(m.base)) }
