package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fadf4e53/sluice"
)

// A view is one key's limiter, whatever becomes of the entry. It is a value so that views of equal keys are ==.
type view[K comparable] struct {
	m   *Map[K]
	key K
	// mistake is what is wrong with the key, which is then left out: comparing views must not panic, and all the
	// NaNs must not look like so many limits to those who tell limits apart by ==.
	mistake string
}

var _ sluice.TryReserver = view[string]{}

func (m *Map[K]) view(key K) view[K] {
	if m == nil || m.odd {
		if why := mistake(key); why != "" {
			return view[K]{m: m, mistake: why}
		}
	}
	return view[K]{m: m, key: key}
}

// begin finds what is wrong with a call, and acquires the key's entry. For nothing no busy key is dropped.
func (v view[K]) begin(ctx context.Context, call string, n int) (*entry[K], error) {
	if err := v.check(ctx, call, n); err != nil {
		return nil, err
	}
	return v.m.acquire(ctx, v.key, n > 0)
}

func (v view[K]) check(ctx context.Context, call string, n int) error {
	switch {
	case v.m == nil || v.m.cfg.New == nil:
		return v.m.unmade(call)
	case ctx == nil:
		return fmt.Errorf("keyed: %s: ctx is nil: must be a context; nothing was taken: %w", call, sluice.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case n < 0:
		return fmt.Errorf("keyed: %s: n is %d: must be at least 0; nothing was taken: %w", call, n, sluice.ErrInvalid)
	case v.mistake != "":
		return fmt.Errorf("keyed: %s: %s; nothing was taken: %w", call, v.mistake, sluice.ErrInvalid)
	}
	return nil
}

// noRoom says whether err is the Map's own no to n > 0 units, and for how long it stands at least.
func (v view[K]) noRoom(err error, n int) (time.Duration, bool) {
	var after noRoom
	if !errors.As(err, &after) {
		return 0, false
	}
	if n > 0 {
		v.m.mu.Lock()
		defer v.m.mu.Unlock()
		v.m.stats.Refused++
	}
	return time.Duration(after), true
}

// refused puts what kept a call from its key's limiter into the words of a Limiter.
func (v view[K]) refused(err error, n int) error {
	if after, ok := v.noRoom(err, n); ok {
		if n == 0 {
			return nil // needs no room
		}
		return fmt.Errorf("keyed: no room for one more key: all %d are busy: %w", v.m.cfg.MaxKeys,
			&sluice.Refusal{Reason: sluice.ErrFull, N: n, RetryAfter: after})
	}
	if err == sluice.ErrClosed {
		return v.m.ended(n)
	}
	return err
}

// ended is the refusal of n units by a closed Map.
func (m *Map[K]) ended(n int) error {
	return fmt.Errorf("keyed: Map closed: %w", &sluice.Refusal{Reason: sluice.ErrClosed, N: n, RetryAfter: sluice.Never})
}

func (v view[K]) Wait(ctx context.Context, n int) error {
	e, err := v.begin(ctx, "Wait", n)
	if err != nil {
		return v.refused(err, n)
	}
	defer v.m.release(e)
	return v.m.sleep(ctx, e, n, func(ctx context.Context) error { return e.lim.Wait(ctx, n) })
}

// sleep calls wait, which Close must end: a limiter that can be closed is, and any other is left.
func (m *Map[K]) sleep(ctx context.Context, e *entry[K], n int, wait func(context.Context) error) error {
	ours := ctx
	if _, ok := e.lim.(io.Closer); !ok {
		var cancel context.CancelFunc
		ours, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(m.life, cancel)()
	}
	err := wait(ours)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		m.sooner(e)
		if errors.Is(err, sluice.ErrInvalid) {
			return ctx.Err() // somebody who sleeps on the same place was told of it first, and has given that up
		}
	case ours.Err() != nil:
		return m.ended(n)
	}
	return err
}

func (v view[K]) Try(ctx context.Context, n int) (sluice.Decision, error) {
	e, err := v.begin(ctx, "Try", n)
	if err != nil {
		return v.decided(err, n)
	}
	defer v.m.release(e)
	return e.lim.Try(ctx, n)
}

// decided is what Try says where a call was kept from its key's limiter.
func (v view[K]) decided(err error, n int) (sluice.Decision, error) {
	after, ok := v.noRoom(err, n)
	switch {
	case !ok:
		return sluice.Decision{RetryAfter: sluice.Never}, v.refused(err, n)
	case n == 0:
		return sluice.Decision{Allowed: true, ResetAfter: after}, nil
	}
	return sluice.Decision{RetryAfter: after, ResetAfter: after}, nil
}

func (v view[K]) TryReserve(ctx context.Context, n int) (sluice.Reservation, sluice.Decision, error) {
	e, err := v.begin(ctx, "TryReserve", n)
	if err != nil {
		d, err := v.decided(err, n)
		if d.Allowed { // 0 units without a limiter
			r, err := sluice.All().Reserve(ctx, n)
			return r, d, err
		}
		return nil, d, err
	}
	defer v.m.release(e)
	r, d, err := sluice.TryReserve(ctx, e.lim, n)
	if r == nil {
		return nil, d, err
	}
	return &reservation[K]{m: v.m, e: e, n: n, inner: r}, d, err
}

func (v view[K]) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	e, err := v.begin(ctx, "Reserve", n)
	if err != nil {
		if err = v.refused(err, n); err != nil {
			return nil, err
		}
		return sluice.All().Reserve(ctx, n) // 0 units without a limiter
	}
	defer v.m.release(e)
	r, err := e.lim.Reserve(ctx, n)
	if err != nil {
		return nil, err
	}
	v.m.reserved(e, r)
	return &reservation[K]{m: v.m, e: e, n: n, inner: r}, nil
}

func (v view[K]) Pause(ctx context.Context, d time.Duration) error {
	if err := v.check(ctx, "Pause", 0); err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("keyed: Pause: d is %v: must be at least 0; nothing is paused: %w", d, sluice.ErrInvalid)
	}
	units := 1 // what it would take to need a key; for no pause none is dropped either
	if d == 0 {
		units = 0
	}
	e, err := v.m.acquire(ctx, v.key, units > 0)
	if err != nil {
		return v.refused(err, units)
	}
	defer v.m.release(e)
	return e.lim.Pause(ctx, d)
}

// Stats makes the key if there is room, to show what it would be; no busy key is dropped for that. It is zero where
// there is nothing to show.
func (v view[K]) Stats() sluice.Stats {
	if v.m == nil || v.m.cfg.New == nil || v.mistake != "" {
		return sluice.Stats{}
	}
	e, err := v.m.acquire(context.Background(), v.key, false)
	if err != nil {
		return sluice.Stats{}
	}
	defer v.m.release(e)
	return e.lim.Stats()
}
