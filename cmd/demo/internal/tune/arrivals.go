package tune

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fadf4e53/sluice"
)

// maxArrivals bounds what is simulated.
const maxArrivals = 200_000

// A pattern is what -arrivals says: rates and herds, joined by +.
type pattern struct {
	text  string
	parts []part
}

// A part is evenly spaced if at is 1, and a herd of at, all at once, otherwise.
type part struct {
	at    int
	every sluice.Rate // of single arrivals, or of herds
}

func (p *pattern) String() string { return p.text }

func (p *pattern) Set(text string) error {
	set := pattern{text: text}
	for one := range strings.SplitSeq(text, "+") {
		one = strings.TrimSpace(one)
		count, period, herd := strings.Cut(one, "@")
		if !herd {
			r, err := sluice.ParseRate(one)
			if err != nil || r.IsUnlimited() {
				return fmt.Errorf("%q must be a rate, like 80/s, or a herd, like 200@5s; several are joined by +", one)
			}
			set.parts = append(set.parts, part{1, r})
			continue
		}
		n, err := strconv.Atoi(count)
		d, err2 := time.ParseDuration(period)
		if err != nil || err2 != nil || n < 1 || n > maxArrivals || d <= 0 {
			return fmt.Errorf("%q must be a herd: how many at once, an @, and how often, like 200@5s", one)
		}
		set.parts = append(set.parts, part{n, sluice.Every(d)})
	}
	*p = set
	return nil
}

// times returns the arrivals of length, in order.
func (p *pattern) times(length time.Duration) ([]time.Duration, error) {
	var all []time.Duration
	for _, one := range p.parts {
		for k := int64(0); ; k++ {
			at := one.every.TimeFor(k)
			if at >= length {
				break
			}
			if len(all)+one.at > maxArrivals {
				return nil, fmt.Errorf("-arrivals %s for %v: more than %d arrivals: simulate less with -for", p.text, length, maxArrivals)
			}
			all = append(all, slices.Repeat([]time.Duration{at}, one.at)...)
		}
	}
	slices.Sort(all)
	return all, nil
}

// readTimes reads a file of arrival times, one in a line: 2026-01-31T12:00:00.25Z, 1.5s or 1.5 (seconds). They count
// from the earliest on. Empty lines and those that begin with # are skipped.
func readTimes(file string) ([]time.Duration, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("-file: %w", err)
	}
	defer f.Close()
	all, err := parseTimes(f)
	if err != nil {
		return nil, fmt.Errorf("-file %s: %w", file, err)
	}
	return all, nil
}

func parseTimes(r io.Reader) ([]time.Duration, error) {
	var all []time.Duration
	lines := bufio.NewScanner(r)
	var zero time.Time // the first time of day in the file
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		at, err := parseTime(text, &zero)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q must be a time, like 2026-01-31T12:00:00Z, 1.5s or 1.5", n, text)
		}
		if len(all) == maxArrivals {
			return nil, fmt.Errorf("more than %d arrivals", maxArrivals)
		}
		all = append(all, at)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no arrival in it")
	}
	slices.Sort(all)
	first := all[0]
	for i := range all {
		all[i] -= first
	}
	return all, nil
}

func parseTime(text string, zero *time.Time) (time.Duration, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		if zero.IsZero() {
			*zero = at
		}
		return at.Sub(*zero), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= -1e9 && seconds <= 1e9) { // NaN is neither
		return 0, fmt.Errorf("not a time")
	}
	return time.Duration(seconds * float64(time.Second)), nil
}
