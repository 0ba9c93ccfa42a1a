// Package exact is the arithmetic under every limiter of one process: what a bucket holds at an instant, and the
// first whole nanosecond at which it holds enough.
//
// It is pure: no clock, no lock, no goroutine. Instants are nanoseconds since a base that the caller chose. Products
// are taken in 128 bits, nothing is rounded but the answer itself, and what does not fit saturates.
package exact

import "math/bits"

// A U128 is an unsigned 128-bit integer that saturates instead of wrapping.
type U128 struct{ Hi, Lo uint64 }

// Max is the largest U128; the sum or product that does not fit.
var Max = U128{^uint64(0), ^uint64(0)}

// Mul returns a·b, which always fits.
func Mul(a, b uint64) U128 {
	hi, lo := bits.Mul64(a, b)
	return U128{hi, lo}
}

// Add returns a+b, or Max.
func (a U128) Add(b U128) U128 {
	lo, c := bits.Add64(a.Lo, b.Lo, 0)
	hi, c := bits.Add64(a.Hi, b.Hi, c)
	if c != 0 {
		return Max
	}
	return U128{hi, lo}
}

// Sub returns a−b, or zero.
func (a U128) Sub(b U128) U128 {
	lo, c := bits.Sub64(a.Lo, b.Lo, 0)
	hi, c := bits.Sub64(a.Hi, b.Hi, c)
	if c != 0 {
		return U128{}
	}
	return U128{hi, lo}
}

// Less says whether a < b.
func (a U128) Less(b U128) bool {
	return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo
}

// Times returns a·b, or Max.
func (a U128) Times(b uint64) U128 {
	over, hi := bits.Mul64(a.Hi, b)
	carry, lo := bits.Mul64(a.Lo, b)
	hi, c := bits.Add64(hi, carry, 0)
	if over != 0 || c != 0 {
		return Max
	}
	return U128{hi, lo}
}

// Div returns ⌊a/d⌋ and the remainder. d must not be zero.
func (a U128) Div(d uint64) (U128, uint64) {
	if a.Hi < d { // almost always, and one division less
		lo, r := bits.Div64(a.Hi, a.Lo, d)
		return U128{0, lo}, r
	}
	hi, r := a.Hi/d, a.Hi%d
	lo, r := bits.Div64(r, a.Lo, d)
	return U128{hi, lo}, r
}

// DivUp returns ⌈a/d⌉. d must not be zero.
func (a U128) DivUp(d uint64) U128 {
	q, r := a.Div(d)
	if r != 0 {
		q = q.Add(U128{0, 1})
	}
	return q
}

// Int64 returns a, or the largest int64.
func (a U128) Int64() int64 {
	const most = 1<<63 - 1
	if a.Hi != 0 || a.Lo > most {
		return most
	}
	return int64(a.Lo)
}

// Least returns the smaller of a and b.
func Least(a, b U128) U128 {
	if b.Less(a) {
		return b
	}
	return a
}

// Most returns the larger of a and b.
func Most(a, b U128) U128 {
	if a.Less(b) {
		return b
	}
	return a
}

// GCD returns the greatest common divisor of a and b, which are not both 0.
func GCD(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
