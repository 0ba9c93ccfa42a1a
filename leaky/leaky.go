package leaky

import (
	"context"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/line"
)

// Config is what New needs.
type Config struct {
	// Rate is the constant outflow. Required.
	Rate sluice.Rate
	// Capacity is how many units the bucket holds: what has started and not run out, and what waits to start. More
	// is ErrFull with RetryAfter = overflow / rate. Required, at least 1.
	Capacity int
	// Strict keeps starts 1/Rate apart even after a late wake-up: the time from one start to the next is counted from
	// when the goroutine is seen to run. That costs a little of the rate. Default: a late wake-up is caught up.
	Strict bool
	// Now is the clock. It may run backwards: nothing runs out then, the mark stays, and waits include the gap. Waits
	// are slept on the real clock and looked at anew by this one. 292 years from New it stands still. It is called under
	// the Pacer's lock: it must be quick, must not panic, and must not use the Pacer. Default: the monotonic clock.
	Now func() time.Time
}

// A Pacer lets work start at a constant rate, first come, first served.
//
// It is a leaky bucket: Wait pours n units in and returns when all that was poured before has run out. After idling
// the first unit starts at once and the next 1/Rate later. The level falls exactly at Rate; a start comes at the
// first nanosecond at which the water ahead of it has run out.
//
// Try pours too, if n units fit, and tells in Decision.Delay when the work is to start. That stays true whatever
// happens later, but for Close: those in line move around it. While a told start stands behind a gap (somebody left, a
// pause, a new rate) Try and Delay look at what stands ahead one by one, 50 ns each.
//
// The zero Pacer is not usable: call New. Any number of goroutines may share one. An idle Pacer has no goroutine and
// no timer.
//
// If ctx ends first, Wait returns ctx's error, the water it poured is taken out again, and everyone behind starts
// that much sooner. A turn that came before ctx ended stands.
//
// Not promised: that a goroutine runs at the nanosecond of its turn; starts that come late can stand closer to the
// next one unless Strict is set, and with Strict the time between the grant and the work itself is not seen.
type Pacer struct {
	line *line.Line
}

var _ sluice.TryReserver = (*Pacer)(nil)

// New returns a Pacer, or an error that names the field, its value and the rule.
func New(c Config) (*Pacer, error) {
	switch {
	case !c.Rate.Valid():
		return nil, fmt.Errorf("leaky: Config.Rate is %v: must be at least 1 unit per at least 1ns: %w", c.Rate, sluice.ErrInvalid)
	case c.Capacity < 1:
		return nil, fmt.Errorf("leaky: Config.Capacity is %d: must be at least 1: %w", c.Capacity, sluice.ErrInvalid)
	}
	return &Pacer{line.New("leaky", line.Config{
		Rate:   c.Rate,
		Burst:  c.Capacity,
		Pacer:  true,
		Strict: c.Strict,
		Now:    c.Now,
	})}, nil
}

// engine is nil for a Pacer that New did not make: the line then says so.
func (p *Pacer) engine() *line.Line {
	if p == nil {
		return nil
	}
	return p.line
}

// Wait pours n units and blocks until they may start. See sluice.Limiter.
func (p *Pacer) Wait(ctx context.Context, n int) error { return p.engine().Wait(ctx, n) }

// Try pours n units if they fit: Decision.Delay tells when they start, Remaining how many more would fit.
// See sluice.Limiter.
func (p *Pacer) Try(ctx context.Context, n int) (sluice.Decision, error) {
	return p.engine().Try(ctx, n)
}

// TryReserve is Try with something to cancel. See sluice.TryReserver.
func (p *Pacer) TryReserve(ctx context.Context, n int) (sluice.Reservation, sluice.Decision, error) {
	return p.engine().TryReserve(ctx, n)
}

// Reserve pours n units without blocking: its Delay tells when they start, and shrinks when others give up.
// See sluice.Limiter.
func (p *Pacer) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	return p.engine().Reserve(ctx, n)
}

// SetRate changes the outflow. The water stays; who is in line is planned anew at once, and what Try has told stays
// true.
func (p *Pacer) SetRate(r sluice.Rate) error { return p.engine().SetRate(r) }

// Pause lets nothing start before now+d, but what Try has told already. Water runs out meanwhile, and the line stays.
func (p *Pacer) Pause(ctx context.Context, d time.Duration) error { return p.engine().Pause(ctx, d) }

// Level returns the water in the bucket now, in units: for gauges.
func (p *Pacer) Level() float64 { return p.engine().Level() }

// Stats returns a snapshot; Burst is the Capacity.
func (p *Pacer) Stats() sluice.Stats { return p.engine().Stats() }

// Close wakes all in line with ErrClosed, and every later call returns it. A turn that came before stands; one that Try
// has told and that has not come is void. Again is a no-op.
func (p *Pacer) Close() error { return p.engine().Close() }
