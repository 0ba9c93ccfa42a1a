package exact

import (
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"
)

// oracle is a bucket in exact fractions of units.
type oracle struct {
	n, d  uint64
	burst uint64
	level *big.Rat
	at    int64
}

func units(n, d *big.Int) *big.Rat { return new(big.Rat).SetFrac(n, d) }

func (o *oracle) flow(ns int64) *big.Rat {
	v := new(big.Int).Mul(big.NewInt(ns), new(big.Int).SetUint64(o.n))
	return units(v, new(big.Int).SetUint64(o.d))
}

func (o *oracle) run(now int64) {
	if now > o.at {
		o.level.Add(o.level, o.flow(now-o.at))
		o.at = now
	}
}

func (o *oracle) spill() {
	if full := new(big.Rat).SetInt(new(big.Int).SetUint64(o.burst)); o.level.Cmp(full) > 0 {
		o.level = full
	}
}

// when is the first whole nanosecond with need units.
func (o *oracle) when(need uint64) *big.Int {
	lack := new(big.Rat).Sub(new(big.Rat).SetInt(new(big.Int).SetUint64(need)), o.level)
	if lack.Sign() <= 0 {
		return big.NewInt(o.at)
	}
	lack.Mul(lack, units(new(big.Int).SetUint64(o.d), new(big.Int).SetUint64(o.n)))
	q, r := new(big.Int).QuoRem(lack.Num(), lack.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.Add(q, big.NewInt(o.at))
}

// FuzzBucket puts a program of takes through a Bucket and through exact fractions, and wants the same answers: never
// a nanosecond early, never one late.
func FuzzBucket(f *testing.F) {
	f.Add(uint64(1), uint64(1), uint64(1), []byte{1, 2, 3, 4, 5, 6})
	f.Add(uint64(3), uint64(1e9), uint64(2), []byte{0x10, 0xff, 0x20, 0x81, 0x01, 0x77, 0x33, 0xa0})
	f.Add(uint64(4e9), uint64(1e9), uint64(1<<60), []byte{9, 9, 9, 9, 250, 251, 252})
	f.Add(uint64(1), uint64(315360000e9), uint64(1<<60), []byte{255, 0, 255, 0, 255})
	f.Add(uint64(math.MaxInt64), uint64(math.MaxInt64-1), uint64(math.MaxInt64), []byte{7, 250, 3, 99})
	f.Fuzz(func(t *testing.T, n, d, burst uint64, program []byte) {
		n, d, burst = n>>1, d>>1, burst>>1
		if n == 0 || d == 0 || burst == 0 || len(program) > 200 {
			t.Skip("not a rate")
		}
		b := NewBucket(n, d, burst)
		o := &oracle{n: n, d: d, burst: burst, level: new(big.Rat).SetInt(new(big.Int).SetUint64(burst))}
		for i, op := range program {
			arg := uint64(op>>2) + 1
			step := int64(1) << (arg % 50)
			if o.at > math.MaxInt64-step-1 {
				break
			}
			switch op % 4 {
			case 0:
				if o.run(o.at + step - 1); step > 1 {
					o.spill()
				}
				b.Advance(b.At()+step-1, b.Full())
			case 1:
				o.run(o.at + step + 1)
				b.Run(b.At() + step + 1)
			default:
				take := min(arg, burst)
				if op%4 == 3 {
					take = max(burst/arg, 1)
				}
				want := o.when(take)
				if !want.IsInt64() {
					require.Equal(t, int64(math.MaxInt64), b.When(b.Parts(take)), "op %d", i)
					continue
				}
				got := b.When(b.Parts(take))
				require.Equal(t, want.Int64(), got, "op %d: %d units at %d/%dns", i, take, n, d)
				o.run(got)
				b.Run(got)
				require.True(t, b.Has(b.Parts(take)))
				o.level.Sub(o.level, new(big.Rat).SetInt(new(big.Int).SetUint64(take)))
				b.Take(b.Parts(take))
			}
			whole := new(big.Int).Quo(o.level.Num(), o.level.Denom())
			require.Zero(t, whole.Cmp(b.Units(b.Level()).big()), "op %d: whole units", i)
		}
	})
}

func TestTheSameNumbersAfterTenMillionTakes(t *testing.T) {
	const takes = 10_000_000
	b := NewBucket(3, 7, 1) // 3 units in 7 ns
	for range takes {
		b.Run(b.When(b.Parts(1)))
		b.Take(b.Parts(1))
	}
	// The first is there at 0; the k-th after it is due at ⌈7k/3⌉.
	require.Equal(t, int64((7*(takes-1)+2)/3), b.At())
}

func TestANewRateKeepsWhatHasGatheredButForLessThanANanosecond(t *testing.T) {
	for _, c := range []struct{ n, d, n2, d2 uint64 }{
		{1, 10, 1, 3}, {3, 1e9, 7, 1e9}, {1, 1e9, 999_983, 1e9}, {4, 1, 1, 1 << 62}, {1, 1 << 62, 4, 1},
	} {
		b := NewBucket(c.n, c.d, 1000)
		b.Empty()
		b.Run(int64(c.d/c.n) + 1)
		was := new(big.Rat).SetFrac(b.Level().big(), new(big.Int).SetUint64(c.d))
		b.SetRate(c.n2, c.d2)
		is := new(big.Rat).SetFrac(b.Level().big(), new(big.Int).SetUint64(c.d2))
		lost := new(big.Rat).Sub(was, is)
		ns := new(big.Rat).SetFrac(new(big.Int).SetUint64(c.n2), new(big.Int).SetUint64(c.d2))
		require.True(t, lost.Sign() >= 0 && lost.Cmp(ns) < 0, "%v: lost %v of %v", c, lost, was)
		level := b.Level()
		b.SetRate(c.n2, c.d2)
		require.Equal(t, level, b.Level(), "the same rate loses nothing")
	}
}

func TestUnlimitedIsAlwaysFullAndComesBackFull(t *testing.T) {
	b := NewBucket(0, 0, 5)
	require.Equal(t, int64(0), b.When(b.Parts(math.MaxInt64)))
	b.Take(b.Parts(1000))
	b.Run(1000)
	require.Equal(t, U128{0, 5}, b.Units(b.Level()))
	b.SetRate(1, 1e9)
	require.Equal(t, U128{0, 5}, b.Units(b.Level()))
	b.Take(b.Parts(5))
	require.Equal(t, int64(1e9+1000), b.When(b.Parts(1)))
	b.SetRate(0, 0)
	require.Equal(t, int64(1000), b.When(b.Parts(5)))
}
