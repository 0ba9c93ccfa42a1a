package keyed

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
)

// noRoom is the error of a new key when all keys are busy: for how long, at least.
type noRoom time.Duration

func (noRoom) Error() string { return "all keys are busy" }

// acquire begins a call for key and returns its entry, made if it is not there: release must follow. With force a busy
// key may be dropped for it.
//
// The entry of a new key stands in the Map before its limiter is made, so that nobody else makes a second one.
func (m *Map[K]) acquire(ctx context.Context, key K, force bool) (*entry[K], error) {
	m.mu.Lock()
	if e := m.keys[key]; e != nil && e.making == nil {
		m.useLocked(e)
		m.mu.Unlock()
		return e, nil
	}
	m.mu.Unlock()

	s := search{force: force}
	for {
		p, err := m.plan(key, &s)
		switch {
		case err != nil:
			return nil, err
		case p.ask.e != nil:
			err = m.look(ctx, p.ask)
		case p.mine:
			return p.e, m.build(ctx, p.e, p.making, &s)
		case p.making != nil:
			err = m.await(ctx, p.making)
		default:
			return p.e, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// A plan is the next step towards a key's entry.
type plan[K comparable] struct {
	ask    find[K]   // a key must be asked whether it is at rest
	e      *entry[K] // the key's own
	making *making   // e must be made first: by us, or by another
	mine   bool
}

// plan looks at the whole Map anew after each step that was taken outside mu.
func (m *Map[K]) plan(key K, s *search) (plan[K], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return plan[K]{}, sluice.ErrClosed
	}
	if e := m.keys[key]; e != nil {
		if e.making == nil {
			m.useLocked(e)
		}
		return plan[K]{e: e, making: e.making}, nil
	}
	f := m.roomLocked(s)
	switch f.what {
	case look:
		return plan[K]{ask: f}, nil
	case full:
		return plan[K]{}, noRoom(f.after)
	}
	// A victim goes only when there is a limiter to put in its place: a key that Config.New refuses must not cost
	// others what they have.
	w := &making{over: make(chan struct{}), held: f.what == room}
	e := &entry[K]{key: key, making: w, pos: [2]int{-1, -1}}
	m.useLocked(e)
	m.keys[key] = e
	if w.held {
		m.held++
	}
	return plan[K]{e: e, making: w, mine: true}, nil
}

// await waits for another goroutine's Config.New. Its error is ours; any other failure we must see for ourselves.
func (m *Map[K]) await(ctx context.Context, w *making) error {
	select {
	case <-w.over:
		return w.err
	case <-ctx.Done():
		return ctx.Err()
	case <-m.life.Done():
		return sluice.ErrClosed
	}
}
