package tune

import (
	"math"
	"math/bits"
	"time"

	"github.com/fadf4e53/sluice"
)

// longestWait is what a bucket would make of the arrivals if it refused nobody: the longest wait, or the first beyond
// enough. It is the search's own arithmetic, as exact as the limiter's: simulating a thousand plans with the limiter
// itself would take minutes. The plan that is found is put to the limiter.
func longestWait(arrivals []time.Duration, rate sluice.Rate, burst int, enough time.Duration) time.Duration {
	n, period := rate.Fraction()
	step, over := int64(period)/n, int64(period)%n // of one unit: ns, and n-ths of one
	spare, spareOver, ok := scaled(int64(burst-1), int64(period), n)
	if !ok {
		return 0 // the burst alone lasts for centuries
	}
	var longest time.Duration
	full, fullOver := int64(math.MinInt64), int64(0) // when the bucket would be full again
	for _, a := range arrivals {
		at := int64(a)
		if full < at {
			full, fullOver = at, 0
		}
		wait := full - spare - at
		if fullOver > spareOver {
			wait++
		}
		if longest = max(longest, time.Duration(wait)); longest > enough {
			return longest
		}
		if full > math.MaxInt64-step-1 {
			return sluice.Never
		}
		full, fullOver = full+step, fullOver+over
		if fullOver >= n {
			full, fullOver = full+1, fullOver-n
		}
	}
	return longest
}

// scaled is a·b/c and what remains over c; false: it does not fit.
func scaled(a, b, c int64) (quotient, rest int64, ok bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return 0, 0, false
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), int64(r), q <= math.MaxInt64
}

// within is the most starts in any time d: a window that contains its beginning and not its end.
func (p plan) within(d time.Duration) int64 {
	n, period := p.rate.Fraction()
	units, rest, ok := scaled(n, int64(d), int64(period))
	switch {
	case !ok || units > math.MaxInt64-int64(p.burst):
		return math.MaxInt64
	case rest > 0 || units == 0:
		return int64(p.burst) + units
	}
	return int64(p.burst) + units - 1
}

// slower says whether fewer units flow at a than at b.
func slower(a, b sluice.Rate) bool {
	n, period := a.Fraction()
	m, other := b.Fraction()
	hi, lo := bits.Mul64(uint64(n), uint64(other))
	hi2, lo2 := bits.Mul64(uint64(m), uint64(period))
	return hi < hi2 || hi == hi2 && lo < lo2
}
