package sluicetest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var lawChecks = []check{
	{name: "law/no window holds more than burst + rate × window, whatever is called", run: lawHolds, clock: virtual},
	{name: "law/whatever is called, Stats adds up", run: statsOfAProgram, clock: virtual},
	{name: "law/while somebody waits nothing idles, whoever leaves", run: nothingIdles, clock: virtual},
}

const seeds = 12

func lawHolds(t *trial) {
	for seed := range uint64(seeds) {
		p := newProgram(t, seed)
		p.cancelsLate = true
		p.play()
		p.checkLaw()
	}
}

// checkLaw looks at every window that begins and ends with a start: no other can hold more.
func (p *program) checkLaw() {
	p.t.Helper()
	// In one instant nobody can tell who was first: the largest may have been last.
	slices.SortFunc(p.starts, func(a, b start) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n)) })
	for i := range p.starts {
		units := int64(0)
		for j := i; j < len(p.starts); j++ {
			window := p.starts[j].at - p.starts[i].at
			flow := p.rate.UnitsIn(window + 1) // the fraction of a ns is carried on
			if p.t.kind.Paced {
				// What starts last must find all that came before it run out.
				if units > flow {
					p.t.Fatalf("seed %d: %d units ahead of a start within %v at %v: at most %d can have run out",
						p.seed, units, window, p.rate, flow)
				}
				units += int64(p.starts[j].n)
				continue
			}
			units += int64(p.starts[j].n)
			if units > int64(p.burst)+flow {
				p.t.Fatalf("seed %d: %d units within %v at %v: at most %d + %d", p.seed, units, window, p.rate, p.burst, flow)
			}
		}
	}
	require.Greater(p.t, len(p.starts), programSteps/8, "seed %d: a program in which hardly anything goes shows nothing", p.seed)
}

func statsOfAProgram(t *trial) {
	for seed := range uint64(seeds) {
		p := newProgram(t, seed)
		p.play()
		got := p.l.Stats()
		require.Equal(t, sluice.Stats{
			Rate: p.rate, Burst: p.burst, Available: got.Available, Waited: got.Waited,
			Granted: p.granted, Refused: p.refused, Canceled: p.canceled, Units: p.units,
		}, got, "seed %d", seed)

		time.Sleep(t.try(p.l, 0).ResetAfter)
		require.Equal(t, p.burst, t.try(p.l, 0).Remaining, "seed %d: at rest", seed)
	}
}

func nothingIdles(t *trial) {
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rate := odd[rng.IntN(len(odd))]
		l, began := t.spent(rate, 1), t.since()
		callers := t.line(l, repeat(1, 200)...)
		for _, c := range callers {
			if rng.IntN(2) == 0 {
				time.AfterFunc(time.Duration(rng.Int64N(int64(rate.TimeFor(200)))), c.cancel)
			}
		}
		turn := 0
		for _, c := range callers {
			<-c.ended
			if c.err == nil {
				require.Equal(t, began+t.due(rate, turn, 1), c.at, "seed %d: the turn of the next who stayed", seed)
				turn++
			}
		}
		require.Greater(t, turn, 100)
	}
}
