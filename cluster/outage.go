package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
)

// ErrOutage says that Redis cannot be asked, which is not the same as being limited. What it wraps is the cause.
var ErrOutage = errors.New("redis cannot be asked")

// Health tells how a Limiter and its Redis get on. The counters only grow.
type Health struct {
	// Down says that Redis cannot be asked, since Since, because of Cause. Calls are then answered by Config.Outage at once,
	// and a probe that takes nothing is sent until one is answered.
	Down  bool
	Since time.Time
	Cause error

	Trips   uint64 // questions to Redis that were answered or failed
	Outages uint64 // times that Down began
	Failed  uint64 // calls answered with ErrOutage
	Opened  uint64 // calls let go by FailOpen
	Local   uint64 // units let go by FailLocal
}

// outage is the breaker.
type outage struct {
	Health
	local *fallback
	wrong bool            // the last answer was a mistake's: nothing is charged until somebody calls
	debt  int             // units let go by FailLocal of which Redis does not know yet
	shut  context.Context // done when the Limiter is closed; nil before the first fallback
	close context.CancelFunc

	probe bool // the next trip is one
	timer *time.Timer
	delay time.Duration // before the next probe
}

const firstProbe, lastProbe = 25 * time.Millisecond, 250 * time.Millisecond

// Health returns a snapshot.
func (l *Limiter) Health() Health {
	if l == nil || l.client == nil {
		return Health{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outage.Health
}

// downLocked begins an outage, or goes on with it: nobody waits for Redis any more, and probes are sent.
func (l *Limiter) downLocked(cause error) {
	o := &l.outage
	o.Cause = cause
	if !o.Down {
		o.Down, o.Since, o.delay = true, time.Now(), firstProbe
		o.Outages++
		if l.cfg.Outage == FailLocal {
			if o.shut == nil {
				o.shut, o.close = context.WithCancel(context.Background())
			}
			o.local = l.newFallback()
		}
	}
	for p := l.asking.head; p != nil; p = l.asking.head {
		l.asking.remove(p)
		l.failLocked(p)
	}
	if l.shut {
		return
	}
	if o.timer == nil {
		o.timer = time.AfterFunc(o.delay, l.probe)
	} else {
		o.timer.Reset(o.delay)
	}
	o.delay = min(2*o.delay, lastProbe)
}

// probe sends a trip that takes nothing. One that is still under way is as good.
func (l *Limiter) probe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.outage.Down && !l.shut && l.trip == nil {
		l.outage.probe = true
		l.flyLocked()
	}
}

// upLocked ends an outage. What went in this process meanwhile is charged, up to its share of the burst: more than that
// has been made up since.
func (l *Limiter) upLocked() {
	o := &l.outage
	o.Down, o.Cause, o.Since = false, nil, time.Time{}
	if o.timer != nil {
		o.timer.Stop()
	}
	if o.local != nil {
		o.debt = min(o.debt+o.local.units, l.shareOfBurst())
		o.local.end()
		o.local = nil
	}
}

// stopLocked ends timers, for Close.
func (l *Limiter) stopLocked() {
	if l.outage.timer != nil {
		l.outage.timer.Stop()
	}
	if l.outage.local != nil {
		l.outage.local.end()
	}
	if l.outage.close != nil {
		l.outage.close()
	}
}

// failLocked answers p by the policy.
func (l *Limiter) failLocked(p *place) {
	switch {
	case p.kind == hold || l.cfg.Outage == FailClosed:
		if p.kind == hold && l.outage.local != nil {
			_ = l.outage.local.limiter.Pause(context.Background(), p.hold)
		}
		l.outage.Failed++
		l.endLocked(p, refused, &outageError{l.cfg.Name, l.outage.Cause})
	case l.cfg.Outage == FailOpen:
		l.outage.Opened++
		p.open = true
		p.decision = sluice.Decision{Allowed: true, Remaining: l.cfg.Burst}
		if p.n == 0 {
			l.endLocked(p, granted, nil)
			return
		}
		l.stats.Granted++
		l.stats.Units += uint64(p.n)
		l.endLocked(p, granted, nil)
	default:
		p.fallback = l.outage.local
		l.endLocked(p, refused, nil)
	}
}

type outageError struct {
	name  string
	cause error
}

func (e *outageError) Error() string {
	return fmt.Sprintf("cluster: the limit %q: %v: %v; nothing was granted", e.name, ErrOutage, e.cause)
}

func (e *outageError) Unwrap() []error { return []error{ErrOutage, e.cause} }
