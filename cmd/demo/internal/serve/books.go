package serve

import (
	"sync"
	"time"
)

// books count what happens.
type books struct {
	arrived, refused, starts, deferred, told, done meter
}

// line is how many jobs have arrived, were let in, and are not done.
func (b *books) line() int { return b.arrived.total() - b.refused.total() - b.done.total() }

// give takes n jobs out of the line that never got into the queue.
func (b *books) give(n int) { b.refused.note(time.Now(), n) }

// A meter counts events, in all and within the last second. Any number of goroutines may share one.
type meter struct {
	mu     sync.Mutex // guards everything below
	all    int
	recent []event // of the last second
}

type event struct {
	at time.Time
	n  int
}

func (m *meter) note(at time.Time, n int) {
	if n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all += n
	m.recent = append(m.recent, event{at, n})
	m.forgetLocked(at)
}

func (m *meter) total() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

// lastSecond is how many there were in the second before now.
func (m *meter) lastSecond(now time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(now)
	sum := 0
	for _, e := range m.recent {
		sum += e.n
	}
	return sum
}

func (m *meter) forgetLocked(now time.Time) {
	i := 0
	for i < len(m.recent) && now.Sub(m.recent[i].at) >= time.Second {
		i++
	}
	m.recent = m.recent[i:]
}

// A frame is what the page is told, ten times a second.
type frame struct {
	knobs
	ArrivedNow  int   `json:"arrivedNow"` // …Now: within the last second
	StartsNow   int   `json:"startsNow"`
	DeferredNow int   `json:"deferredNow"`
	Arrived     int   `json:"arrived"`
	Starts      int   `json:"starts"`
	Deferred    int   `json:"deferred"`
	Refused     int   `json:"refused"`
	Told        int   `json:"told"` // answered 429
	Done        int   `json:"done"`
	Line        int   `json:"line"`
	Busy        int64 `json:"busy"` // ms for which the service behind will answer 429
}

func (w *works) frame() frame {
	w.mu.Lock()
	k, busy := w.knobs, max(0, time.Until(w.busy).Milliseconds())
	w.mu.Unlock()
	b, now := &w.books, time.Now()
	return frame{
		knobs:      k,
		ArrivedNow: b.arrived.lastSecond(now), StartsNow: b.starts.lastSecond(now), DeferredNow: b.deferred.lastSecond(now),
		Arrived: b.arrived.total(), Starts: b.starts.total(), Deferred: b.deferred.total(), Refused: b.refused.total(),
		Told: b.told.total(), Done: b.done.total(), Line: b.line(), Busy: busy,
	}
}
