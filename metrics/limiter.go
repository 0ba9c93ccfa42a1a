package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/fadf4e53/sluice"
)

// A limiter is a Limiter that is observed. It is a value so that two of the same are ==.
type limiter struct {
	series *series
	inner  sluice.Limiter
}

// A closer is one that can be closed. Whoever closes what he owns, as keyed.Map does, asks for the method.
type closer struct{ limiter }

var (
	_ sluice.TryReserver = limiter{}
	_ sluice.TryReserver = closer{}
)

func (c closer) Close() error { return c.inner.(interface{ Close() error }).Close() }

func (l limiter) Wait(ctx context.Context, n int) error {
	if n == 0 {
		return l.inner.Wait(ctx, n)
	}
	if ctx == nil {
		err := l.inner.Wait(ctx, n)
		l.series.fail(ctx, err, false)
		return err
	}
	w := &watch{Context: ctx, series: l.series}
	err := l.inner.Wait(w, n)
	switch since := w.since.Swap(over); {
	case since != 0:
		l.series.inLine.Add(-1)
		if err == nil {
			l.series.grant(n, time.Duration(l.series.now()-since))
			return nil
		}
		l.series.fail(ctx, err, true)
	case err == nil:
		l.series.atOnce.Add(1)
		l.series.units.Add(uint64(n))
	default:
		l.series.fail(ctx, err, false)
	}
	return err
}

// A watch is the context of one call of Wait, and tells when the limiter begins to listen for its end: that is when a
// call that cannot be granted at once lies down. A look at the clock before and after each call would tell the same,
// and cost more than most calls do.
type watch struct {
	context.Context
	series *series
	since  atomic.Int64 // 0: it has not; or over
}

const over = -1

func (w *watch) Done() <-chan struct{} {
	if w.since.Load() == 0 && w.since.CompareAndSwap(0, w.series.now()) {
		w.series.inLine.Add(1)
	}
	return w.Context.Done()
}

func (l limiter) Try(ctx context.Context, n int) (sluice.Decision, error) {
	d, err := l.inner.Try(ctx, n)
	l.decided(ctx, n, d, err)
	return d, err
}

func (l limiter) TryReserve(ctx context.Context, n int) (sluice.Reservation, sluice.Decision, error) {
	r, d, err := sluice.TryReserve(ctx, l.inner, n)
	if err == nil && n > 0 && d.Allowed && d.Delay > 0 { // a pacer's, which may be taken back before its turn
		return l.series.reserved(promised{r, l.series, l.series.now() + int64(d.Delay)}, n), d, nil
	}
	l.decided(ctx, n, d, err)
	return r, d, err
}

// A promised is a Reservation of TryReserve, which need not tell its Delay: that stays as the Decision has told it.
type promised struct {
	sluice.Reservation
	series *series
	due    int64
}

func (p promised) Delay() time.Duration { return time.Duration(max(p.due-p.series.now(), 0)) }

// decided counts the answer to a Try.
func (l limiter) decided(ctx context.Context, n int, d sluice.Decision, err error) {
	switch {
	case n == 0:
	case err != nil:
		l.series.fail(ctx, err, false)
	case !d.Allowed:
		l.series.refused[notNow].Add(1)
	default:
		l.series.grant(n, d.Delay)
	}
}

func (l limiter) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	r, err := l.inner.Reserve(ctx, n)
	if n == 0 {
		return r, err
	}
	if err != nil {
		l.series.fail(ctx, err, false)
		return nil, err
	}
	return l.series.reserved(r, n), nil
}

func (l limiter) Pause(ctx context.Context, d time.Duration) error { return l.inner.Pause(ctx, d) }

func (l limiter) Stats() sluice.Stats { return l.inner.Stats() }
