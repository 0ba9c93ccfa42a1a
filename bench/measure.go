package main

import (
	"slices"
	"syscall"
	"time"
)

// cpu returns the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A series is what one measurement gave, round by round.
type series []float64

func (s series) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// at returns the p-th part of sorted durations.
func at(sorted []time.Duration, p float64) time.Duration {
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}

// A scene is one question, asked of everybody in every round.
type scene struct {
	name    string
	what    string // for the reader, under the heading
	columns []string
	run     func(peer) []float64 // nil: does not apply to this peer
	format  []string
}

// play runs all rounds of s, interleaved: everybody once, then everybody again, in turning order.
func (s scene) play(who []peer, rounds int) [][]series {
	got := make([][]series, len(who))
	for i := range got {
		got[i] = make([]series, len(s.columns))
	}
	for r := range rounds {
		for k := range who {
			i := (k + r) % len(who)
			settle()
			for c, v := range s.run(who[i]) {
				got[i][c] = append(got[i][c], v)
			}
		}
	}
	return got
}
