package waiter

import (
	"context"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/line"
)

// Config is what New needs.
type Config struct {
	// Rate is how fast tokens gather. Required.
	Rate sluice.Rate
	// Burst is how many tokens can gather, and so how many units can go at once. Required, at least 1.
	Burst int
	// StartEmpty starts with no token instead of Burst of them.
	StartEmpty bool
	// MaxWait is the longest wait that may be promised: who would wait longer is refused at once with ErrMaxWait.
	// Default: no bound.
	MaxWait time.Duration
	// MaxWaiters is how many callers may stand in line: one more is refused at once with ErrFull.
	// Default: no bound.
	MaxWaiters int
	// AllowOversize lets Wait and Reserve ask for more than Burst: such a call waits at the head of the line until
	// that many tokens have gathered. Default: ErrTooLarge.
	AllowOversize bool
	// Now is the clock. It may run backwards: nothing gathers then, the mark stays, and waits include the gap. Waits
	// are slept on the real clock and looked at anew by this one. 292 years from New it stands still: nothing more
	// gathers. It is called under the Limiter's lock: it must be quick, must not panic, and must not use the Limiter.
	// Default: the monotonic clock.
	Now func() time.Time
}

// A Limiter lets units go at an average rate, first come, first served.
//
// It is a token bucket: tokens gather at Rate up to Burst, and n units go when n tokens are there and nobody stands
// in line before them. In any window of length w at most burst + rate·w units go. The arithmetic is exact: a turn
// comes at the first nanosecond that the law allows. After a wake-up that came late by the fault of the timer or the
// scheduler, the caller may catch up by that much, and by no more.
//
// The zero Limiter is not usable: call New. Any number of goroutines may share one. A waiting caller costs a few
// hundred bytes and no timer of its own; an idle Limiter has no goroutine and no timer.
//
// If ctx ends first, Wait returns ctx's error, nothing was taken, and everyone behind moves up. A turn that came
// before ctx ended stands, even if both happen in the same instant.
//
// Not promised: that a goroutine runs at the nanosecond of its turn; fairness by units (a large n is served in its
// turn, not in parts); anything across processes.
type Limiter struct {
	line *line.Line
}

var _ sluice.TryReserver = (*Limiter)(nil)

// New returns a Limiter, or an error that names the field, its value and the rule.
func New(c Config) (*Limiter, error) {
	invalid := func(field string, value any, rule string) error {
		return fmt.Errorf("waiter: Config.%s is %v: %s: %w", field, value, rule, sluice.ErrInvalid)
	}
	switch {
	case !c.Rate.Valid():
		return nil, invalid("Rate", c.Rate, "must be at least 1 unit per at least 1ns")
	case c.Burst < 1:
		return nil, invalid("Burst", c.Burst, "must be at least 1")
	case c.MaxWait < 0:
		return nil, invalid("MaxWait", c.MaxWait, "must be at least 0, which is no bound")
	case c.MaxWaiters < 0:
		return nil, invalid("MaxWaiters", c.MaxWaiters, "must be at least 0, which is no bound")
	}
	return &Limiter{line.New("waiter", line.Config{
		Rate:       c.Rate,
		Burst:      c.Burst,
		Empty:      c.StartEmpty,
		MaxWait:    c.MaxWait,
		MaxWaiters: c.MaxWaiters,
		Oversize:   c.AllowOversize,
		Now:        c.Now,
	})}, nil
}

// engine is nil for a Limiter that New did not make: the line then says so.
func (l *Limiter) engine() *line.Line {
	if l == nil {
		return nil
	}
	return l.line
}

// Wait blocks until n units may go, and returns nil exactly when they were taken. See sluice.Limiter.
func (l *Limiter) Wait(ctx context.Context, n int) error { return l.engine().Wait(ctx, n) }

// Try takes n units if they are there and nobody is in line. See sluice.Limiter.
func (l *Limiter) Try(ctx context.Context, n int) (sluice.Decision, error) {
	return l.engine().Try(ctx, n)
}

// TryReserve is Try with something to cancel. See sluice.TryReserver.
func (l *Limiter) TryReserve(ctx context.Context, n int) (sluice.Reservation, sluice.Decision, error) {
	return l.engine().TryReserve(ctx, n)
}

// Reserve takes a place in line without blocking. MaxWait bounds it too. See sluice.Limiter.
func (l *Limiter) Reserve(ctx context.Context, n int) (sluice.Reservation, error) {
	return l.engine().Reserve(ctx, n)
}

// SetRate changes the rate. Who is in line stays there and is planned anew at once; what has gathered is kept.
func (l *Limiter) SetRate(r sluice.Rate) error { return l.engine().SetRate(r) }

// SetBurst changes the burst. The tokens are kept, up to the new burst, and so is who is in line.
func (l *Limiter) SetBurst(n int) error { return l.engine().SetBurst(n) }

// Pause lets nothing go before now+d. Tokens gather meanwhile, up to Burst, and the line stays.
func (l *Limiter) Pause(ctx context.Context, d time.Duration) error { return l.engine().Pause(ctx, d) }

// Stats returns a snapshot.
func (l *Limiter) Stats() sluice.Stats { return l.engine().Stats() }

// Close wakes all in line with ErrClosed, and every later call returns it. A turn that came before stands. Again is a
// no-op.
func (l *Limiter) Close() error { return l.engine().Close() }
