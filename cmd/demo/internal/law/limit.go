// Package law holds starts against their limit, and tells a broken limit from a machine that was held up.
package law

import (
	"math"
	"time"

	"github.com/fadf4e53/sluice"
)

// Window is what a rate per second is measured over.
const Window = time.Second

// A Limit is what starts are held against.
type Limit struct {
	Rate  sluice.Rate
	Burst int
}

// Allowed is the most starts in any window: burst + rate. A start that may have been held up by late counts for when it
// was due: the window then reaches back that far. Without a limit it is math.MaxInt.
func (l Limit) Allowed(late time.Duration) int {
	n := l.Rate.UnitsIn(Window + late)
	if n > math.MaxInt64-int64(l.Burst) {
		return math.MaxInt
	}
	return l.Burst + int(n)
}

// Ideal is the least time in which n jobs can all have started: the burst goes at once.
func (l Limit) Ideal(n int) time.Duration { return l.Rate.TimeFor(int64(n - l.Burst)) }

// Peak returns the most starts in any window, both ends included, wherever it lies: not in each full second, for which
// twice the limit across a boundary would look right. starts are in order.
func Peak(starts []time.Duration) int {
	most, first := 0, 0
	for i, at := range starts {
		for at-starts[first] > Window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
