package main

import (
	"sync"
	"time"
)

// A pulse measures by how much the operating system and the scheduler hold this process up. A limiter decides when work is
// due, and nobody can promise that it runs at that moment: on a machine that stalls for 60 ms, what came due meanwhile
// starts at once, and a start by its own clock can be that late. Without this number the demo would have to call that
// a broken limit.
type pulse struct {
	stop chan struct{}
	done sync.WaitGroup
	late time.Duration // the worst; readable after close
}

// beat is short against any stall that shows: a start for each 20 ms, by default.
const beat = time.Millisecond

func newPulse() *pulse {
	p := &pulse{stop: make(chan struct{})}
	p.done.Go(p.run)
	return p
}

func (p *pulse) run() {
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		began := time.Now()
		timer.Reset(beat)
		select {
		case <-timer.C:
			p.late = max(p.late, time.Since(began)-beat)
		case <-p.stop:
			return
		}
	}
}

// close ends the measuring and returns the worst.
func (p *pulse) close() time.Duration {
	close(p.stop)
	p.done.Wait()
	return p.late
}
