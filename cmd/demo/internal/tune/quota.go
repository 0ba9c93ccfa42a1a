package tune

import (
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
)

// A quota is what a downstream takes: n in any window of per. Unlike a sluice.Rate it is not reduced: 60 in any minute
// are not 1 in any second.
type quota struct {
	n   int64
	per time.Duration
}

func (q quota) String() string {
	if q == (quota{}) {
		return ""
	}
	for unit, d := range map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour} {
		if q.per == d {
			return fmt.Sprintf("%d/%s", q.n, unit)
		}
	}
	return fmt.Sprintf("%d/%v", q.n, q.per)
}

// Set reads what sluice.ParseRate reads.
func (q *quota) Set(text string) error {
	r, err := sluice.ParseRate(text)
	if err != nil {
		return err
	}
	if r.IsUnlimited() {
		return fmt.Errorf("must be a limit: without one there is nothing to tune")
	}
	var n int64
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return err
	}
	units, period := r.Fraction()
	if n > most || period > year/time.Duration(n/units) {
		return fmt.Errorf("must be at most %d units, in at most a year", most)
	}
	*q = quota{n, period * time.Duration(n/units)}
	return nil
}

// The largest quotas: beyond most no wait could be told from none.
const (
	most = 1_000_000_000
	year = 366 * 24 * time.Hour
)
