package queue

import "context"

// Drain hands back at once, and due at once, what waits in place, and calls nothing back any more: srv.Stop();
// gate.Drain(); srv.Shutdown() takes milliseconds. A task on its last attempt keeps its slot until Asynq puts it back
// unharmed at the end of ShutdownTimeout. Tasks that come after Drain and are limited are handed back too, until the
// next Configure. Drain does not wait for the tasks to be gone; Shutdown does. It closes the connections of a Gate that has
// Config.Redis, which no other call does. Called again, or on a nil Gate, it does nothing.
func (g *Gate) Drain() {
	if g == nil || g.lanes == nil {
		return
	}
	g.mu.Lock()
	g.draining = true
	g.halt()
	var leave []context.CancelFunc
	for _, cancel := range g.stands {
		if cancel != nil {
			leave = append(leave, cancel)
		}
	}
	var out []*parked
	for _, p := range g.parked {
		if p.called {
			out = append(out, p)
		}
	}
	for _, l := range g.lanes {
		for _, p := range l.waits {
			p.index = -1
		}
		l.waits = nil
	}
	g.mu.Unlock()

	for _, cancel := range leave {
		cancel()
	}
	for _, p := range out {
		g.giveUp(p, false)
	}
	if g.caller != nil {
		g.caller.close()
	}
}
