package law

import (
	"sync"
	"time"
)

// A Pulse measures when the operating system and the scheduler hold this process up. A limiter decides when work is due,
// and nobody can promise that it runs at that moment: on a machine that stalls for 60 ms, what came due meanwhile starts
// at once, and a start by its own clock can be that late. Without this the demo would have to call that a broken limit.
type Pulse struct {
	began  time.Time
	stop   chan struct{}
	done   sync.WaitGroup
	stalls []Stall // readable after Close
}

// A Stall is a time in which the process did not run, since the Pulse began.
type Stall struct{ From, To time.Duration }

// beat is short against any stall that shows: a start for each 20 ms, by default.
const beat = time.Millisecond

// NewPulse begins to measure; began is the zero of the Stalls.
func NewPulse(began time.Time) *Pulse {
	p := &Pulse{began: began, stop: make(chan struct{})}
	p.done.Go(p.run)
	return p
}

func (p *Pulse) run() {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		began := time.Now()
		timer.Reset(beat)
		select {
		case <-timer.C:
			if late := time.Since(began) - beat; late > ordinary {
				due := began.Add(beat).Sub(p.began)
				p.stalls = append(p.stalls, Stall{due, due + late})
			}
		case <-p.stop:
			return
		}
	}
}

// Close ends the measuring and returns the stalls that were more than ordinary lateness.
func (p *Pulse) Close() []Stall {
	close(p.stop)
	p.done.Wait()
	return p.stalls
}
