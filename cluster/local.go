package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

// A fallback limits this process by itself while Redis is out.
type fallback struct {
	limiter *waiter.Limiter
	over    context.Context // done when Redis is back
	end     context.CancelFunc
	shut    context.Context // done when the Limiter is closed
	units   int             // let go
}

func (l *Limiter) shareOfBurst() int {
	return (l.cfg.Burst-1)/max(l.cfg.Processes, 1) + 1
}

// newFallback starts empty: what Redis had let go before is not known here, and the limit is worth more than a few units.
func (l *Limiter) newFallback() *fallback {
	limiter, err := waiter.New(waiter.Config{
		Rate: l.cfg.share(), Burst: l.shareOfBurst(), StartEmpty: true, MaxWait: l.cfg.Horizon, AllowOversize: true,
	})
	if err != nil {
		panic("cluster: checked when the Limiter was made: " + err.Error())
	}
	f := &fallback{limiter: limiter, shut: l.outage.shut}
	f.over, f.end = context.WithCancel(context.Background())
	return f
}

// waitLocally waits in the fallback's line, or asks Redis once more when that is back.
func (l *Limiter) waitLocally(ctx context.Context, p *place) error {
	f := p.fallback
	either, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(f.over, stop)()
	err := f.limiter.Wait(either, p.n)
	l.mu.Lock()
	if err == nil {
		l.localLocked(f, p)
		l.mu.Unlock()
		return nil
	}
	var no *sluice.Refusal
	switch {
	case errors.As(err, &no):
		l.stats.Refused++
	case ctx.Err() != nil:
		l.stats.Canceled++
	default:
		l.mu.Unlock()
		again := newPlace(p.kind, p.n)
		again.deadline = p.deadline
		return l.call(ctx, again)
	}
	l.mu.Unlock()
	return err
}

// tryLocally is Try and TryReserve.
func (l *Limiter) tryLocally(ctx context.Context, p *place) (sluice.Reservation, sluice.Decision, error) {
	r, d, err := p.fallback.limiter.TryReserve(ctx, p.n)
	if err != nil {
		return nil, d, err
	}
	local := &localReservation{Reservation: r, l: l, p: p}
	switch {
	case d.Allowed:
		local.granted()
		return local, d, nil
	case p.n > 0:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stats.Refused++
	}
	return nil, d, nil
}

// reserveLocally is Reserve.
func (l *Limiter) reserveLocally(ctx context.Context, p *place) (sluice.Reservation, error) {
	r, err := p.fallback.limiter.Reserve(ctx, p.n)
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.stats.Refused++
		return nil, err
	}
	local := &localReservation{Reservation: r, l: l, p: p}
	local.Delay() // a turn that has come already is counted, whether or not anybody asks again
	return local, nil
}

// A localReservation is one in the fallback's line. It stays there when Redis is back.
type localReservation struct {
	sluice.Reservation
	l *Limiter
	p *place

	// Guarded by Limiter.mu.
	counted bool // as granted, refused or left
	went    bool // as granted
	gone    bool // given back
}

func (r *localReservation) Delay() time.Duration {
	d := r.Reservation.Delay()
	if d == 0 {
		r.granted()
	}
	return d
}

func (r *localReservation) granted() {
	r.l.mu.Lock()
	defer r.l.mu.Unlock()
	if !r.counted && r.p.n > 0 {
		r.counted, r.went = true, true
		r.l.localLocked(r.p.fallback, r.p)
	}
}

func (r *localReservation) Wait(ctx context.Context) error {
	if ctx == nil {
		return r.Reservation.Wait(ctx)
	}
	either, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(r.p.fallback.shut, stop)()
	err := r.Reservation.Wait(either)
	if err == nil {
		r.granted()
		return nil
	}
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ctx.Err() != nil && errors.Is(err, sluice.ErrInvalid):
		err = ctx.Err() // somebody who sleeps on it too was told of it first, and has given it up
	case l.shut && ctx.Err() == nil && errors.Is(err, context.Canceled):
		err = l.refusal(sluice.ErrClosed, r.p.n, sluice.Never)
	}
	if !r.counted && !errors.Is(err, sluice.ErrInvalid) {
		r.counted = true
		if ctx.Err() != nil {
			l.stats.Canceled++
		} else {
			l.stats.Refused++
		}
	}
	return err
}

func (r *localReservation) Cancel() {
	r.Delay() // after the turn it is a grant that is given back
	r.Reservation.Cancel()
	l := r.l
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case r.gone:
	case r.went:
		l.stats.Units -= uint64(r.p.n)
		r.p.fallback.units = max(0, r.p.fallback.units-r.p.n)
	case !r.counted:
		l.stats.Canceled++
	}
	r.counted, r.gone = true, true
}

// localLocked counts p, whom the fallback has let go.
func (l *Limiter) localLocked(f *fallback, p *place) {
	l.stats.Granted++
	l.stats.Units += uint64(p.n)
	l.stats.Waited += time.Duration(l.local() - p.joined)
	l.outage.Local += uint64(p.n)
	f.units = min(f.units+p.n, l.cfg.Burst) // more is never charged
	if l.outage.local != f {
		l.outage.debt = min(l.outage.debt+p.n, l.shareOfBurst()) // Redis came back just now
	}
}
