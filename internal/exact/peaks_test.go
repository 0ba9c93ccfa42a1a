package exact

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPeaksAgainstRememberingEverything: the stack must say what a list of all levels says, and may only err towards
// giving back less.
func TestPeaksAgainstRememberingEverything(t *testing.T) {
	const full = 1000
	at := func(n uint64) U128 { return U128{0, n} }
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var p Peaks
		highest := map[uint64]uint64{} // by mark
		level := uint64(full)
		exact := true
		for range 400 {
			level = min(level+r.Uint64N(40), full)
			p.Note(at(level), at(full))
			for m := range highest {
				highest[m] = max(highest[m], level)
			}
			level -= min(level, r.Uint64N(60))
			if r.IntN(3) == 0 {
				m := p.Mark(at(level))
				highest[m] = level
				exact = exact && len(p.stack) < maxPeaks
			}
			for m, want := range highest {
				if got := p.Since(m, at(full)).Lo; got < want || exact && got != want {
					t.Fatalf("seed %d: got %d, want %d", seed, got, want)
				}
			}
			require.LessOrEqual(t, len(p.stack), maxPeaks)
		}
	}
}

func TestPeaksBeyondItsMemoryGivesLessNeverMore(t *testing.T) {
	var p Peaks
	full := U128{0, 100_000}
	var marks []uint64
	for level := uint64(90_000); level > 70_000; level-- { // always lower: nothing can be merged
		marks = append(marks, p.Mark(U128{0, level}))
		p.Note(U128{0, level}, full)
	}
	require.Len(t, p.stack, maxPeaks)
	for i, m := range marks {
		want := uint64(90_000 - i)
		got := p.Since(m, full).Lo
		if got < want || i < maxPeaks && got != want {
			t.Fatalf("mark %d: got %d, want %d", i, got, want)
		}
	}
}

func TestPeaksForgetsWhatSpilled(t *testing.T) {
	var p Peaks
	full := U128{0, 10}
	m := p.Mark(U128{0, 3})
	p.Note(full, full)
	require.Equal(t, full, p.Since(m, full))
	require.Empty(t, p.stack)
	m = p.Mark(U128{0, 4})
	p.Rescale(10, 0)
	require.Equal(t, full, p.Since(m, full))
}
