package keyed

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheSmallestIsOnTopWhateverIsMovedOrTakenOut(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		h := lazyHeap[int]{order: byUse}
		var in []*entry[int]
		for step := range 2000 {
			at := rng.Int64N(100)
			switch {
			case len(in) == 0 || rng.IntN(3) == 0 && len(in) < 60:
				e := &entry[int]{key: step, pos: [2]int{-1, -1}}
				h.push(e, at)
				in = append(in, e)
			case rng.IntN(3) == 0:
				i := rng.IntN(len(in))
				h.remove(in[i])
				require.False(t, h.has(in[i]))
				h.remove(in[i]) // is not there
				in = slices.Delete(in, i, i+1)
			default:
				h.set(in[rng.IntN(len(in))], at)
			}
			require.Len(t, h.list, len(in))
			if len(in) == 0 {
				require.Nil(t, h.top())
				continue
			}
			least := slices.MinFunc(in, func(a, b *entry[int]) int { return int(a.at[byUse] - b.at[byUse]) })
			require.Equal(t, least.at[byUse], h.top().at[byUse], "seed %d, step %d", seed, step)
		}
	}
}
