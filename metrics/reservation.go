package metrics

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fadf4e53/sluice"
)

// A reservation counts as granted when its turn is first seen to have come, by whoever looks: its owner, or a scrape.
type reservation struct {
	series *series
	inner  sluice.Reservation
	n      int
	since  int64
	told   time.Duration // the wait that it was promised
	ended  atomic.Bool   // counted
}

func (s *series) reserved(inner sluice.Reservation, n int) *reservation {
	r := &reservation{series: s, inner: inner, n: n, since: s.now(), told: inner.Delay()}
	if r.told == 0 {
		r.came(0)
	} else {
		s.keep(r)
	}
	return r
}

// end says whether r had not been counted.
func (r *reservation) end() bool {
	if !r.ended.CompareAndSwap(false, true) {
		return false
	}
	r.series.forget(r)
	return true
}

func (r *reservation) came(waited time.Duration) {
	if r.end() {
		r.series.grant(r.n, waited)
	}
}

func (r *reservation) elapsed() time.Duration { return time.Duration(r.series.now() - r.since) }

// Delay finds the turn come without knowing since when: it was not later than promised, unless a pause or a lower rate
// has put it off.
func (r *reservation) Delay() time.Duration {
	d := r.inner.Delay()
	if d == 0 {
		r.came(min(r.told, r.elapsed()))
	}
	return d
}

func (r *reservation) Wait(ctx context.Context) error {
	r.Delay() // a turn that came before is not counted as if it came now
	err := r.inner.Wait(ctx)
	switch {
	case err == nil:
		r.came(r.elapsed())
	case errors.Is(err, sluice.ErrInvalid): // the place is kept, or was given back before
	case r.end():
		r.series.fail(ctx, err, true)
	}
	return err
}

func (r *reservation) Cancel() {
	r.Delay() // a turn that came before was granted
	r.inner.Cancel()
	if r.end() {
		r.series.canceled.Add(1)
	}
}
