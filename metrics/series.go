package metrics

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/fadf4e53/sluice"
)

// A series is what is counted under one name.
type series struct {
	base time.Time

	// The way of most calls is two additions: one that did not wait is counted here and not in waits.
	atOnce atomic.Uint64
	units  atomic.Uint64

	waits    prometheus.Histogram // of granted calls that waited
	inLine   atomic.Int64         // calls of Wait that wait now
	refused  [len(reasons)]atomic.Uint64
	canceled atomic.Uint64
	failed   atomic.Uint64

	mu      sync.Mutex // guards everything below. No foreign code runs under it.
	only    sluice.Limiter
	several bool                      // limiters go by this name: only is nil
	pending map[*reservation]struct{} // whose turn has not been seen to come
	sweepAt int                       // how many of them there may be before they are looked at
}

// The reasons of a refusal, as they are told in the label.
var reasons = [...]struct {
	err  error
	name string
}{
	notNow: {nil, "not_now"},
	other:  {nil, "other"},
	2:      {sluice.ErrDeadline, "deadline"},
	3:      {sluice.ErrMaxWait, "max_wait"},
	4:      {sluice.ErrFull, "full"},
	5:      {sluice.ErrTooLarge, "too_large"},
	6:      {sluice.ErrClosed, "closed"},
}

const (
	notNow = iota // of a Try, which has no other
	other         // of a Refusal for a reason that is a limiter's own
)

const firstSweep = 64

func newSeries() *series {
	return &series{base: time.Now(), waits: newWaits(), pending: make(map[*reservation]struct{}), sweepAt: firstSweep}
}

// now is the time since base, and never 0.
func (s *series) now() int64 { return max(int64(time.Since(s.base)), 0) + 1 }

// name says that l goes by this name.
func (s *series) name(l sluice.Limiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.several:
	case s.only == nil:
		s.only = l
	case !reflect.ValueOf(l).Comparable() || !reflect.ValueOf(s.only).Comparable() || l != s.only:
		s.only, s.several = nil, true
	}
}

// grant counts a call that was granted after so long.
func (s *series) grant(n int, waited time.Duration) {
	s.units.Add(uint64(n))
	if waited <= 0 {
		s.atOnce.Add(1)
		return
	}
	s.waits.Observe(seconds(waited))
}

// fail counts a call that was not granted. One whose ctx had ended before it stood in line was never there.
func (s *series) fail(ctx context.Context, err error, waited bool) {
	var no *sluice.Refusal
	switch {
	case errors.As(err, &no) && no != nil:
		s.refused[reasonOf(no.Reason)].Add(1)
	case ctx == nil || !errors.Is(err, ctx.Err()):
		s.failed.Add(1)
	case waited:
		s.canceled.Add(1)
	}
}

func reasonOf(err error) int {
	for i, r := range reasons {
		if r.err != nil && errors.Is(err, r.err) {
			return i
		}
	}
	return other
}

// keep remembers r until its turn is seen to have come: who reserves need not come back to say so.
func (s *series) keep(r *reservation) {
	s.mu.Lock()
	s.pending[r] = struct{}{}
	full := len(s.pending) >= s.sweepAt
	s.mu.Unlock()
	if full {
		left := s.sweep()
		s.mu.Lock()
		s.sweepAt = max(firstSweep, 2*left)
		s.mu.Unlock()
	}
}

func (s *series) forget(r *reservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, r)
}

// sweep looks at the reservations that are not known to have come due, and returns how many are not.
func (s *series) sweep() int {
	s.mu.Lock()
	all := make([]*reservation, 0, len(s.pending))
	for r := range s.pending {
		all = append(all, r)
	}
	s.mu.Unlock()
	left := 0
	for _, r := range all {
		switch r.Delay() {
		case 0:
		case sluice.Never: // cancelled, or its limiter was closed
			s.forget(r)
		default:
			left++
		}
	}
	return left
}

func (s *series) collect(to chan<- prometheus.Metric, name string) {
	waiting := s.sweep()
	gauge(to, waitingDesc, float64(s.inLine.Load()+int64(waiting)), name)
	s.mu.Lock()
	only := s.only
	s.mu.Unlock()
	if only != nil {
		gauge(to, availableDesc, float64(only.Stats().Available), name)
	}

	var m dto.Metric
	if err := s.waits.Write(&m); err != nil {
		to <- prometheus.NewInvalidMetric(waitDesc, err)
		return
	}
	atOnce := s.atOnce.Load() // once, so that the calls granted and the waits observed are as many
	counter(to, grantedDesc, float64(atOnce+m.Histogram.GetSampleCount()), name)
	to <- waitMetric{waits: m.Histogram, zeros: atOnce, name: name}
	counter(to, unitsDesc, float64(s.units.Load()), name)
	for i := range reasons {
		counter(to, refusedDesc, float64(s.refused[i].Load()), name, reasons[i].name)
	}
	counter(to, canceledDesc, float64(s.canceled.Load()), name)
	counter(to, errorsDesc, float64(s.failed.Load()), name)
}
