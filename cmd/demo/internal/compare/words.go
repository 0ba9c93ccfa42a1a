package compare

import (
	"fmt"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
)

// came is the arrivals as if all had started at once.
func (sc scene) came() *sim.Outcome {
	var out sim.Outcome
	for _, a := range sc.arrivals {
		out.Starts = append(out.Starts, a.At)
	}
	return &out
}

// verdict is what a panel says in one line.
func (r result) verdict(s settings) string {
	text := fmt.Sprintf("%d in a second", r.peak)
	if r.broke(s) {
		text += fmt.Sprintf(" = %.1f × the limit", float64(r.peak)/float64(s.limit))
	}
	text += fmt.Sprintf(" · %d refused", r.Refused)
	switch {
	case r.Left > 0:
		text += fmt.Sprintf(" · %d hung up", r.Left)
	case r.Longest() > 0:
		text += " · waits to " + short(r.Longest())
	}
	return text
}

// short cuts a wait to what is read: hundredths of a second, or milliseconds below one.
func short(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	}
	return fmt.Sprintf("%.2fs", d.Seconds())
}
