package keyed

import (
	"context"
	"time"

	"github.com/fadf4e53/sluice"
)

// A reservation is a place in the line of a key's limiter. It keeps that limiter, whatever becomes of the key.
//
// It does not count among the entry's pins, since its owner may forget it, and a key would then be held for ever. It need
// not: while the place waits for its turn the limiter is not at rest and says so. Once it is at rest all turns have come
// and what they took has been made up, so that even Cancel has nothing left to give back. And Oldest asks for those
// who wait.
type reservation[K comparable] struct {
	m     *Map[K]
	e     *entry[K]
	n     int
	inner sluice.Reservation
}

// reserved remembers the last place that was taken, whose turn says when nobody waits for the key any more.
func (m *Map[K]) reserved(e *entry[K], r sluice.Reservation) {
	if m.cfg.Evict != Oldest {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.last = r
}

func (r *reservation[K]) Delay() time.Duration {
	d := r.inner.Delay()
	if d > 0 && r.m.life.Err() != nil {
		return sluice.Never // also where the limiter could not be closed
	}
	return d
}

func (r *reservation[K]) Wait(ctx context.Context) error {
	if ctx == nil {
		return r.inner.Wait(ctx)
	}
	r.m.again(r.e)
	defer r.m.release(r.e)
	err := r.m.sleep(ctx, r.e, r.n, r.inner.Wait)
	if err != nil {
		r.m.sooner(r.e) // the place has been given up
	}
	return err
}

func (r *reservation[K]) Cancel() {
	r.inner.Cancel()
	r.m.sooner(r.e)
}
