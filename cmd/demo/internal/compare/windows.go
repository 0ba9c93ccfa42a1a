package compare

import (
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
)

// A fixedWindow counts the calls of each full second, from 0 on, and refuses what is over: the counter in Redis that
// expires. It knows nothing of the second before.
type fixedWindow struct {
	clock *sim.Clock
	limit int
	index time.Duration // of the second that is counted
	count int
}

func (w *fixedWindow) Ask() (sim.Place, bool) {
	if index := w.clock.At() / time.Second; index != w.index {
		w.index, w.count = index, 0
	}
	if w.count == w.limit {
		return nil, false
	}
	w.count++
	return sim.Now{}, true
}

// A slidingWindow remembers each call of the last second, and refuses what is over: exact, at the price of a memory for
// each call, and nobody waits.
type slidingWindow struct {
	clock *sim.Clock
	limit int
	calls []time.Duration // the last limit ones, oldest first
}

func (w *slidingWindow) Ask() (sim.Place, bool) {
	now := w.clock.At()
	if len(w.calls) == w.limit {
		if now-w.calls[0] < time.Second {
			return nil, false
		}
		w.calls = w.calls[1:]
	}
	w.calls = append(w.calls, now)
	return sim.Now{}, true
}
