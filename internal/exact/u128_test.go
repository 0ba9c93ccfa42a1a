package exact

import (
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

func (a U128) big() *big.Int {
	v := new(big.Int).SetUint64(a.Hi)
	return v.Lsh(v, 64).Add(v, new(big.Int).SetUint64(a.Lo))
}

// saturate is what 128 bits can hold of v.
func saturate(v *big.Int) *big.Int {
	switch top := Max.big(); {
	case v.Sign() < 0:
		return new(big.Int)
	case v.Cmp(top) > 0:
		return top
	}
	return v
}

func FuzzU128(f *testing.F) {
	top := ^uint64(0)
	for _, s := range [][5]uint64{
		{0, 0, 0, 0, 1}, {0, 1, 0, 1, 1}, {top, top, 0, 1, 3}, {top, top, top, top, top}, {1, 0, 0, 1, 10}, {0, top, 1, 0, top},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4])
	}
	f.Fuzz(func(t *testing.T, ah, al, bh, bl, c uint64) {
		a, b := U128{ah, al}, U128{bh, bl}
		big128 := func(want *big.Int, got U128, op string) {
			require.Zero(t, saturate(want).Cmp(got.big()), "%s: %v %v %v: got %v, want %v", op, a, b, c, got.big(), want)
		}
		big128(new(big.Int).Add(a.big(), b.big()), a.Add(b), "Add")
		big128(new(big.Int).Sub(a.big(), b.big()), a.Sub(b), "Sub")
		big128(new(big.Int).Mul(a.big(), new(big.Int).SetUint64(c)), a.Times(c), "Times")
		big128(new(big.Int).Mul(new(big.Int).SetUint64(al), new(big.Int).SetUint64(c)), Mul(al, c), "Mul")
		require.Equal(t, a.big().Cmp(b.big()) < 0, a.Less(b))
		if c > 0 {
			q, r := a.Div(c)
			wantQ, wantR := new(big.Int).QuoRem(a.big(), new(big.Int).SetUint64(c), new(big.Int))
			big128(wantQ, q, "Div")
			require.Zero(t, wantR.Cmp(new(big.Int).SetUint64(r)))
			if wantR.Sign() > 0 {
				wantQ.Add(wantQ, big.NewInt(1))
			}
			big128(wantQ, a.DivUp(c), "DivUp")
		}
		if a.Int64() < 1<<63-1 {
			require.Zero(t, big.NewInt(a.Int64()).Cmp(a.big()))
		} else {
			require.True(t, a.big().Cmp(big.NewInt(1<<63-1)) >= 0)
		}
	})
}
