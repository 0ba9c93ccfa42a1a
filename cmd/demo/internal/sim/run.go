// Package sim puts limiters under arrivals on a virtual clock: ten seconds take a millisecond, and the same input gives
// the same answer on every machine.
package sim

import (
	"slices"
	"time"
)

// A Clock stands still until Run moves it.
type Clock struct{ at time.Duration }

// Now is what a limiter's Config.Now wants.
func (c *Clock) Now() time.Time { return time.Unix(0, 0).Add(c.at) }

// At is the time since the beginning.
func (c *Clock) At() time.Duration { return c.at }

// An Arrival is one caller.
type Arrival struct {
	At       time.Duration
	Patience time.Duration // how long it waits before it hangs up, which no limiter knows beforehand; 0: for ever
}

// A Limiter is what is under test. It reads the Clock that Run moves.
type Limiter interface {
	// Ask lets one caller join the line; false: refused.
	Ask() (Place, bool)
}

// A Place is a caller's turn to come. A sluice.Reservation is one.
type Place interface {
	Delay() time.Duration
	Cancel()
}

// Now is the Place of one whose turn is at once.
type Now struct{}

func (Now) Delay() time.Duration { return 0 }
func (Now) Cancel()              {}

type caller struct {
	came, leaves time.Duration // leaves: never for those who stay
	place        Place
}

const never = time.Duration(1<<63 - 1)

// Run lets everybody arrive, wait and start or leave. arrivals are in order. At one instant turns that have come are
// taken first, then those leave who give up, then others arrive: a turn stands that came just in time.
func Run(clock *Clock, arrivals []Arrival, l Limiter) Outcome {
	var (
		out  Outcome
		line []*caller // first come, first served

		leave = never // when the first of them hangs up
	)
	for len(arrivals) > 0 || len(line) > 0 {
		turn, arrive := never, never
		if len(line) > 0 {
			turn = clock.at + line[0].place.Delay()
		}
		if len(arrivals) > 0 {
			arrive = arrivals[0].At
		}
		clock.at = max(clock.at, min(turn, leave, arrive))
		switch {
		case turn <= clock.at:
			head := line[0]
			out.start(clock.at, head.came)
			line = line[1:]
			if head.leaves < never && head.leaves == leave {
				leave = firstToLeave(line)
			}
		case leave <= clock.at:
			i := slices.IndexFunc(line, func(c *caller) bool { return c.leaves <= clock.at })
			line[i].place.Cancel()
			line = slices.Delete(line, i, i+1)
			leave = firstToLeave(line)
			out.Left++
		default:
			place, ok := l.Ask()
			if !ok {
				out.Refused++
			} else {
				c := &caller{came: arrive, leaves: never, place: place}
				if p := arrivals[0].Patience; p > 0 {
					c.leaves = arrive + p
					leave = min(leave, c.leaves)
				}
				line = append(line, c)
				out.Line = max(out.Line, waiting(line))
			}
			arrivals = arrivals[1:]
		}
	}
	return out
}

// firstToLeave looks at all: Run asks it only when the one it had is gone.
func firstToLeave(line []*caller) time.Duration {
	first := never
	for _, c := range line {
		first = min(first, c.leaves)
	}
	return first
}

// waiting is how many stand in line when the one who came last does not go at once.
func waiting(line []*caller) int {
	if line[len(line)-1].place.Delay() == 0 {
		return 0
	}
	return len(line)
}
