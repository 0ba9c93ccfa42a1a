package line

import (
	"math"
	"time"
)

const (
	never   = math.MaxInt64 // the instant that does not come
	unarmed = -1            // no instant of a turn
)

// add returns the instant d after t, d not being negative; never if that is past the end of time.
func add(t, d int64) int64 {
	if d > never-max(t, 0) {
		return never
	}
	return t + d
}

// span returns the time from one instant to another: 0 if that is past, and sluice.Never if it never comes or is too
// far for a Duration.
func span(from, to int64) time.Duration {
	switch {
	case to == never || from < 0 && to > never+from:
		return never
	case to <= from:
		return 0
	}
	return time.Duration(to - from)
}

// sum returns a+b, or the largest number.
func sum(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}
