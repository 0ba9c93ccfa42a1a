package sim

import (
	"math"
	"slices"
	"time"
)

// An Outcome is what became of the arrivals.
type Outcome struct {
	Starts  []time.Duration // in order
	Waits   []time.Duration // of those who started
	Refused int             // turned away on arrival
	Left    int             // hung up while they waited
	Line    int             // the most who waited at once
}

func (o *Outcome) start(at, came time.Duration) {
	o.Starts = append(o.Starts, at)
	o.Waits = append(o.Waits, at-came)
}

// Longest is the longest wait of those who started.
func (o *Outcome) Longest() time.Duration {
	if len(o.Waits) == 0 {
		return 0
	}
	return slices.Max(o.Waits)
}

// Percentile is the wait that p of 100 starts did not exceed, by nearest rank.
func (o *Outcome) Percentile(p float64) time.Duration {
	if len(o.Waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(o.Waits))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}

// Peak is the most starts in any window of this length, wherever it lies. A window contains its beginning and not its
// end, so that starts exactly 10 ms apart are 100 in a second and not 101.
func (o *Outcome) Peak(window time.Duration) int {
	most, first := 0, 0
	for i, at := range o.Starts {
		for at-o.Starts[first] >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Recent samples how many starts there were within the window that ends at 0, step, 2·step … until end.
func (o *Outcome) Recent(window, step, end time.Duration) []int {
	var counts []int
	first, next := 0, 0
	for t := time.Duration(0); t <= end; t += step {
		for next < len(o.Starts) && o.Starts[next] <= t {
			next++
		}
		for first < next && t-o.Starts[first] >= window {
			first++
		}
		counts = append(counts, next-first)
	}
	return counts
}
