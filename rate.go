package sluice

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/fadf4e53/sluice/internal/exact"
)

// Never is the largest Duration: the wait for what no waiting brings about, and for what lies further ahead than a
// Duration can say (292 years).
const Never time.Duration = 1<<63 - 1

// A Rate is an exact average: n whole units per period, kept as a reduced fraction. Two Rates that mean the same
// are ==, so a Rate can be compared, used as a map key and put into a const-like table:
//
//	PerSecond(50) == Per(100, 2*time.Second) == Every(20*time.Millisecond)
//
// The zero Rate, and one made from n < 1 or a period < 1 ns, is not Valid: every constructor that takes a Rate
// refuses it with ErrInvalid. Such a Rate keeps the numbers it was made from, so that an error can show them.
//
// A Rate is a value: any number of goroutines may use one.
type Rate struct {
	n         int64
	d         time.Duration
	unlimited bool
}

// Unlimited is the Rate at which everything flows at once.
var Unlimited = Rate{unlimited: true}

// Per returns the rate of n units per period.
func Per(n int64, period time.Duration) Rate {
	if n < 1 || period < 1 {
		return Rate{n: n, d: period}
	}
	g := int64(exact.GCD(uint64(n), uint64(period)))
	return Rate{n: n / g, d: period / time.Duration(g)}
}

// PerSecond returns the rate of n units per second.
func PerSecond(n int64) Rate { return Per(n, time.Second) }

// Every returns the rate of one unit per interval.
func Every(interval time.Duration) Rate { return Per(1, interval) }

// Valid says whether anything can flow at this rate.
func (r Rate) Valid() bool { return r.unlimited || r.n >= 1 && r.d >= 1 }

// IsUnlimited says whether r is Unlimited.
func (r Rate) IsUnlimited() bool { return r.unlimited }

// Fraction returns the rate as its reduced fraction: n units per period. For Unlimited it is 0, 0.
func (r Rate) Fraction() (n int64, period time.Duration) { return r.n, r.d }

// TimeFor returns the least time in which n units flow, rounded up to a whole nanosecond. It is 0 for n < 1 and for
// Unlimited, and Never where the time does not fit a Duration or r is not Valid.
func (r Rate) TimeFor(n int64) time.Duration {
	switch {
	case n <= 0 || r.unlimited:
		return 0
	case !r.Valid():
		return Never
	}
	return time.Duration(exact.Mul(uint64(n), uint64(r.d)).DivUp(uint64(r.n)).Int64())
}

// UnitsIn returns the whole units that flow in d, rounded down: for every d below Never the most n with TimeFor(n) <= d.
// It is 0 for d < 0 and where r is not Valid, and the largest int64 for Unlimited or where the number does not fit.
func (r Rate) UnitsIn(d time.Duration) int64 {
	switch {
	case d < 0 || !r.Valid():
		return 0
	case r.unlimited:
		return 1<<63 - 1
	}
	q, _ := exact.Mul(uint64(d), uint64(r.n)).Div(uint64(r.d))
	return q.Int64()
}

// PerSecond returns the rate as a float: for people and gauges, never for decisions. It is +Inf for Unlimited and 0
// where r is not Valid.
func (r Rate) PerSecond() float64 {
	switch {
	case r.unlimited:
		return math.Inf(1)
	case !r.Valid():
		return 0
	}
	return float64(r.n) / r.d.Seconds()
}

// slower says whether less flows at r than at s.
func (r Rate) slower(s Rate) bool {
	switch {
	case r.unlimited:
		return false
	case s.unlimited:
		return true
	}
	return exact.Mul(uint64(r.n), uint64(s.d)).Less(exact.Mul(uint64(s.n), uint64(r.d)))
}

// String writes what ParseRate reads: over the first of s, min and h that makes n whole ("50/s", "5/min"), else as
// the reduced fraction ("3/7ms").
func (r Rate) String() string {
	if r.unlimited {
		return "unlimited"
	}
	if r.n == 0 && r.d == 0 {
		return "0/s"
	}
	for _, p := range periods {
		if p.printed && r.d > 0 && p.d%r.d == 0 {
			if hi, lo := bits.Mul64(magnitude(r.n), uint64(p.d/r.d)); hi == 0 && lo < 1<<63 {
				return sign(r.n) + strconv.FormatUint(lo, 10) + "/" + p.name
			}
		}
	}
	return strconv.FormatInt(r.n, 10) + "/" + r.d.String()
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func sign(n int64) string {
	if n < 0 {
		return "-"
	}
	return ""
}

// periods are the words that may stand behind the slash. The printed ones come first, in the order in which String
// tries them.
var periods = []struct {
	name    string
	d       time.Duration
	printed bool
}{
	{"s", time.Second, true},
	{"min", time.Minute, true},
	{"h", time.Hour, true},
	{"ns", 1, false},
	{"us", time.Microsecond, false},
	{"µs", time.Microsecond, false},
	{"μs", time.Microsecond, false},
	{"ms", time.Millisecond, false},
	{"sec", time.Second, false},
	{"second", time.Second, false},
	{"m", time.Minute, false},
	{"minute", time.Minute, false},
	{"hour", time.Hour, false},
	{"d", 24 * time.Hour, false},
	{"day", 24 * time.Hour, false},
}

// ParseRate reads a rate as String writes it and people type it: a whole number, a slash, and a unit or a Duration.
//
//	50/s   3/min   5000/h   2000/day   1/250ms   10/2s   unlimited
//
// The units are ns, us (µs), ms, s (sec, second), m (min, minute), h (hour) and d (day); anything else behind the
// slash is read by time.ParseDuration. The error names the text and the rule that it breaks, and is ErrInvalid.
func ParseRate(text string) (Rate, error) {
	bad := func(rule string) (Rate, error) {
		return Rate{}, fmt.Errorf("sluice: rate %q: %s: %w", text, rule, ErrInvalid)
	}
	t := strings.TrimSpace(text)
	if t == Unlimited.String() {
		return Unlimited, nil
	}
	count, period, found := strings.Cut(t, "/")
	if !found {
		return bad(`must be units per time, like "50/s", "3/min", "10/2s", or "unlimited"`)
	}
	count, period = strings.TrimSpace(count), strings.TrimSpace(period)
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return bad(fmt.Sprintf("units %q must be a whole number from 1 to 9223372036854775807", count))
	}
	if n < 1 {
		return bad(fmt.Sprintf("units %d must be at least 1", n))
	}
	d, ok := parsePeriod(period)
	if !ok {
		return bad(fmt.Sprintf("time %q must be a unit (s, min, h, ...) or a duration like 250ms", period))
	}
	if d < 1 {
		return bad(fmt.Sprintf("time %q must be at least 1ns", period))
	}
	return Per(n, d), nil
}

func parsePeriod(text string) (time.Duration, bool) {
	for _, p := range periods {
		if p.name == text {
			return p.d, true
		}
	}
	d, err := time.ParseDuration(text)
	return d, err == nil
}

// MarshalText writes r as String does. A Rate that is not Valid is an error.
func (r Rate) MarshalText() ([]byte, error) {
	if !r.Valid() {
		return nil, fmt.Errorf("sluice: rate %s: must be at least 1 unit per at least 1ns: %w", r, ErrInvalid)
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads what ParseRate reads; on an error r keeps its value.
func (r *Rate) UnmarshalText(text []byte) error {
	if r == nil {
		return fmt.Errorf("sluice: Rate.UnmarshalText into a nil *Rate: %w", ErrInvalid)
	}
	parsed, err := ParseRate(string(text))
	if err == nil {
		*r = parsed
	}
	return err
}
