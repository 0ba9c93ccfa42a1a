package cluster

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// A Limiter keeps one limit together with every other Limiter of the same Name in the same Redis.
//
// It is a token bucket that may be in debt: a call takes its units in Redis when it asks, in one trip, and then waits for
// its turn on the monotonic clock of its own process. In any window of length w all processes together let at most
// burst + rate·w units go. Within a process turns come in the order of the calls, between processes in the order in which
// they reach Redis. See the package's text for what an outage, a failover and a changed Config do.
//
// The zero Limiter is not usable: call New. Any number of goroutines may share one. It has at most one trip under way and
// one timer; while nobody calls there is no goroutine. Close it when it is not needed any more.
//
// If ctx ends first, the call returns ctx's error at once, whatever Redis does, and its turn goes to the next
// caller of this process. A turn that came before ctx ended stands.
type Limiter struct {
	cfg    Config
	terms  terms
	client redis.UniversalClient
	script script
	key    string
	base   time.Time
	spares sync.Pool // places of Waits that are over, most of what a call would allocate; channels must not cross synctest bubbles

	mu sync.Mutex

	// ahead is Redis' clock less ours, in ns: never more than it is in truth, so that no turn comes early.
	ahead int64
	known bool // Redis has answered once

	line   queue      // who owns a turn, in order
	need   exact.U128 // what they need
	owned  owned
	asking queue      // who has to ask, in order
	floor  exact.U128 // Redis' time before which nothing can go: what has passed, and a pause

	paused exact.U128 // Redis' time until which nothing goes
	end    exact.U128 // where the debt ended when Redis last answered

	trip    *trip         // under way
	landing bool          // its answer is being dealt out,
	woken   []*place      // to these
	landed  chan struct{} // closed when no trip is under way any more
	timer   *time.Timer   // runs while somebody is in line
	armed   exact.U128    // for this turn

	outage outage
	stats  sluice.Stats // only its counters
	shut   bool
}

var _ sluice.TryReserver = (*Limiter)(nil)

// New returns a Limiter, or an error that names the field, its value and the rule. It does not ask Redis. The client
// remains the caller's: Close does not close it.
func New(client redis.UniversalClient, c Config) (*Limiter, error) {
	if err := checkClient(client); err != nil {
		return nil, err
	}
	c, t, err := c.checked()
	if err != nil {
		return nil, err
	}
	return &Limiter{
		cfg: c, terms: t, client: client, script: newScript(source), key: "sluice:" + c.Name,
		base: time.Now(), spares: sync.Pool{New: func() any { return newPlace(wait, 0) }},
	}, nil
}

// nowLocked returns Redis' time in ns, as this process knows it: late, never early.
func (l *Limiter) nowLocked() int64 { return l.local() + l.ahead }

// local is the monotonic time since New.
func (l *Limiter) local() int64 { return int64(time.Since(l.base)) }

// check finds what is wrong with a call before it looks at the limit.
func (l *Limiter) check(ctx context.Context, call string, n int) error {
	switch {
	case l == nil || l.client == nil:
		return fmt.Errorf("cluster: %s on a Limiter that New did not make; nothing was taken: %w", call, sluice.ErrInvalid)
	case ctx == nil:
		return fmt.Errorf("cluster: %s: ctx is nil: must be a context; nothing was taken: %w", call, sluice.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("cluster: %s: n is %d: must be at least 0; nothing was taken: %w", call, n, sluice.ErrInvalid)
	}
	return nil
}

func (l *Limiter) refusal(reason error, n int, retry time.Duration) *sluice.Refusal {
	return &sluice.Refusal{Reason: reason, N: n, RetryAfter: retry, Rate: l.cfg.Rate, Burst: l.cfg.Burst}
}

// hopelessLocked refuses what no waiting helps.
func (l *Limiter) hopelessLocked(n int) error {
	var reason error
	switch {
	case l.shut:
		reason = sluice.ErrClosed
	case n > l.cfg.Burst:
		reason = sluice.ErrTooLarge
	default:
		return nil
	}
	l.stats.Refused++
	return l.refusal(reason, n, sluice.Never)
}

// Wait blocks until n units may go, and returns nil exactly when they were taken. See sluice.Limiter.
func (l *Limiter) Wait(ctx context.Context, n int) error {
	if err := l.check(ctx, "Wait", n); err != nil {
		return err
	}
	p := l.spares.Get().(*place)
	p.n, p.deadline = n, l.deadline(ctx)
	if err := l.enter(p); err != nil {
		return err
	}
	return l.sleep(ctx, p)
}

// Pause lets nothing go before now+d, but for at most 71 years, in any process. Turns that another process owns already and that come before
// it next asks Redis may still be used. While Redis cannot be asked it returns ErrOutage, whatever the policy. If ctx ends
// while Redis is being asked, the pause may begin all the same.
func (l *Limiter) Pause(ctx context.Context, d time.Duration) error {
	if err := l.check(ctx, "Pause", 0); err != nil {
		return err
	}
	if d < 0 {
		return fmt.Errorf("cluster: Pause: d is %v: must be at least 0; nothing is paused: %w", d, sluice.ErrInvalid)
	}
	if d == 0 {
		return nil
	}
	p := newPlace(hold, 0)
	p.hold = (min(d, longest) + 999) / 1000 * 1000
	return l.call(ctx, p)
}

// deadline returns ctx's deadline by our clock.
func (l *Limiter) deadline(ctx context.Context) int64 {
	if d, ok := ctx.Deadline(); ok {
		return l.instant(d, time.Now)
	}
	return math.MaxInt64
}

// instant returns d by our clock. A time without a monotonic reading, as one that came over a wire, is taken from now on:
// from base it would be measured by the wall clock, which may have been set since.
func (l *Limiter) instant(d time.Time, now func() time.Time) int64 {
	if d != d.Round(0) {
		return int64(d.Sub(l.base))
	}
	local := l.local()
	return local + min(int64(d.Sub(now())), math.MaxInt64-local)
}

// Close wakes all who wait with ErrClosed, and every later call returns it. A turn that came before stands. What this
// process owns goes back as far as nobody has come after it. It waits for a trip under way, up to Timeout; if Redis
// stalls, the goroutine ends with the client's ReadTimeout. Again is a no-op. The client stays open.
func (l *Limiter) Close() error {
	if l == nil || l.client == nil {
		return fmt.Errorf("cluster: Close of a Limiter that New did not make: %w", sluice.ErrInvalid)
	}
	l.mu.Lock()
	l.settleLocked()
	if !l.shut {
		l.shut = true
		for _, q := range []*queue{&l.line, &l.asking} {
			for p := q.head; p != nil; p = q.head {
				q.remove(p)
				l.closedLocked(p)
			}
		}
		if l.trip != nil {
			for _, p := range slices.Concat(l.trip.callers, l.trip.others) {
				p.shared = true
				l.closedLocked(p)
			}
		}
		l.need = exact.U128{}
		l.stopLocked()
		l.flyLocked()
	}
	landed := l.landed
	l.mu.Unlock()
	if landed != nil {
		select {
		case <-landed:
		case <-time.After(l.cfg.Timeout):
		}
	}
	return nil
}

func (l *Limiter) closedLocked(p *place) {
	if p.state == waiting {
		if p.kind != hold {
			l.stats.Refused++
		}
		l.endLocked(p, closed, l.refusal(sluice.ErrClosed, p.n, sluice.Never))
	}
}
