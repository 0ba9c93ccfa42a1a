package keyed

import (
	"context"
	"fmt"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/isnil"
)

// making is Config.New at work for a key. Whoever wants the same key waits for it.
type making struct {
	over chan struct{}
	held bool  // it has one of the MaxKeys
	err  error // of Config.New, when it is over
}

// build makes e's limiter and puts it into the Map, or takes e out again: also when Config.New panics.
func (m *Map[K]) build(ctx context.Context, e *entry[K], w *making, s *search) (err error) {
	var lim sluice.Limiter
	var dropped *entry[K]
	ready := false
	w.err = fmt.Errorf("keyed: Config.New of key %v: it did not return: %w", e.key, sluice.ErrInvalid)
	defer func() {
		if !ready {
			m.unmake(e, w)
		}
		if lim != nil && !ready {
			_ = shut(lim) // nobody has seen it
		}
		if dropped != nil {
			_ = shut(dropped.lim)
		}
	}()
	if lim, err = m.cfg.New(e.key); err != nil {
		lim = nil
		w.err = fmt.Errorf("keyed: Config.New of key %v: %w", e.key, err)
		return w.err
	}
	if isnil.Value(lim) {
		lim = nil
		w.err = fmt.Errorf("keyed: Config.New of key %v is <nil>: must be a limiter or an error: %w", e.key, sluice.ErrInvalid)
		return w.err
	}
	w.err = nil
	for {
		f, err := m.settle(e, w, lim, s)
		switch {
		case err != nil:
			return err
		case f.what == look:
			if err := m.look(ctx, f); err != nil {
				return err
			}
		default:
			ready, dropped = true, f.e
			return nil
		}
	}
}

// settle puts e, for which there is a limiter now, into its place, if need be into that of a victim.
func (m *Map[K]) settle(e *entry[K], w *making, lim sluice.Limiter, s *search) (find[K], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var f find[K]
	switch {
	case m.closed:
		return f, sluice.ErrClosed
	case !w.held:
		f = m.roomLocked(s)
	}
	switch f.what {
	case look:
		return f, nil
	case full:
		return f, noRoom(f.after)
	case victim:
		m.dropLocked(f.e)
	}
	if !w.held {
		m.held++
	}
	e.lim, e.making = lim, nil
	m.byRest.push(e, m.now())
	m.droppableLocked(e)
	close(w.over)
	return f, nil
}

// unmake takes e, whose limiter could not be made, out of the Map.
func (m *Map[K]) unmake(e *entry[K], w *making) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.dead = true; !m.closed {
		delete(m.keys, e.key)
		if w.held {
			m.held--
		}
	}
	close(w.over)
}
