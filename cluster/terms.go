package cluster

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// terms is the limit in numbers that both sides can count with.
//
// Time is counted in parts, of which n flow in a nanosecond and d are worth a unit, so that nothing in this process
// is ever rounded. Redis counts in whole microseconds and a remainder over den, which is as exact: a unit costs
// d/(1000·n) µs, and den is that fraction's denominator when it is reduced.
type terms struct {
	burst int

	n, d   uint64
	grain  uint64     // the parts in 1/den µs
	den    uint64     // grain·den parts are a microsecond
	full   exact.U128 // what the burst is worth
	text   string     // what the terms are called in Redis
	far    uint64     // µs: the most that anybody may owe
	micros uint64     // the parts in a microsecond

	denText, farText string // den and far, as they are sent
}

const (
	// A double holds whole numbers up to 2^53. Microseconds since 1970 take a fifth of that; the rest is shared by
	// what a burst is worth and how far ahead anybody may wait or pause: 71 years each.
	longestUS = uint64(1) << 51
	longest   = time.Duration(longestUS) * time.Microsecond
	mostDen   = uint64(1) << 52
)

// newTerms returns the terms of a valid rate and burst, or what about them cannot be counted exactly.
func newTerms(rate sluice.Rate, burst int, horizon time.Duration) (terms, error) {
	t := terms{burst: burst, n: 1, d: 0}
	if !rate.IsUnlimited() {
		n, d := rate.Fraction()
		t.n, t.d = uint64(n), uint64(d)
	}
	t.text = fmt.Sprintf("%d/%d/%d", t.n, t.d, burst)
	if t.n > mostDen {
		return t, invalid("Rate", rate, "must be at most 2^52 units per any time, as a reduced fraction")
	}
	t.micros = 1000 * t.n
	t.grain = exact.GCD(t.micros, t.d)
	if t.den = t.micros / t.grain; t.den > mostDen {
		return t, invalid("Rate", rate, "must have a time per unit that is whole µs and at most 2^52 parts of one")
	}
	t.full = exact.Mul(uint64(burst), t.d)
	full, _ := t.up(t.full)
	if full > longestUS {
		return t, invalid("Burst", burst, "must flow within 71 years at "+rate.String())
	}
	t.far = full + uint64((horizon+999)/1000)
	t.denText, t.farText = strconv.FormatUint(t.den, 10), strconv.FormatUint(t.far, 10)
	return t, nil
}

// cost returns what n units are worth.
func (t *terms) cost(n int) exact.U128 { return exact.Mul(uint64(n), t.d) }

// units returns the whole units that are worth so much.
func (t *terms) units(parts exact.U128) int {
	if t.d == 0 {
		return t.burst
	}
	q, _ := parts.Div(t.d)
	return int(min(q.Int64(), math.MaxInt))
}

// span returns d in parts.
func (t *terms) span(d time.Duration) exact.U128 {
	if d <= 0 {
		return exact.U128{}
	}
	return exact.Mul(uint64(d), t.n)
}

// wait returns parts as a Duration, rounded up.
func (t *terms) wait(parts exact.U128) time.Duration {
	return time.Duration(parts.DivUp(t.n).Int64())
}

// down returns parts as Redis counts them. What lies between two of its steps is rounded down; its own sums never do.
func (t *terms) down(parts exact.U128) (us, rem uint64) {
	q, r := parts.Div(t.micros)
	return uint64(q.Int64()), r / t.grain
}

// up returns parts in whole microseconds, rounded up.
func (t *terms) up(parts exact.U128) (us uint64, exactly bool) {
	q, r := parts.Div(t.micros)
	if r > 0 {
		q = q.Add(exact.U128{Lo: 1})
	}
	return uint64(q.Int64()), r == 0
}

// parts is the inverse of down.
func (t *terms) parts(us, rem uint64) exact.U128 {
	return exact.Mul(us, t.micros).Add(exact.Mul(rem, t.grain))
}

// name returns parts as they stand in the key.
func (t *terms) name(parts exact.U128) string {
	us, rem := t.down(parts)
	return strconv.FormatUint(us, 10) + ":" + strconv.FormatUint(rem, 10)
}
