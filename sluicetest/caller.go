package sluicetest

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

// A caller is a goroutine in Wait.
type caller struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error         // what Wait returned
	at     time.Duration // when, since the check began
}

// start lets a goroutine call wait. In virtual time it returns when that sleeps there, or has come back.
func (t *trial) start(parent context.Context, wait func(context.Context) error) *caller {
	ctx, cancel := context.WithCancel(parent)
	c := &caller{cancel: cancel, ended: make(chan struct{})}
	// A check that fails ends here: whoever is still in line must go, or the bubble could not end.
	t.Cleanup(cancel)
	go func() {
		defer close(c.ended)
		c.err = wait(ctx)
		c.at = t.since()
	}()
	if t.bubble {
		synctest.Wait()
	}
	return c
}

// joinBy lets a goroutine Wait for n units under ctx, and returns when it is in line.
func (t *trial) joinBy(ctx context.Context, l sluice.Limiter, n int) *caller {
	t.Helper()
	waiting := l.Stats().Waiting
	c := t.start(ctx, func(ctx context.Context) error { return l.Wait(ctx, n) })
	if !t.bubble {
		t.eventually("the caller is in line", func() bool { return c.over() || l.Stats().Waiting > waiting })
	}
	return c
}

// join is joinBy without a deadline.
func (t *trial) join(l sluice.Limiter, n int) *caller {
	t.Helper()
	return t.joinBy(background, l, n)
}

// sleepOn lets a goroutine Wait for r. On the real clock nobody can see whether it sleeps yet: it must make no
// difference.
func (t *trial) sleepOn(r sluice.Reservation) *caller { return t.start(background, r.Wait) }

// line lets one goroutine after the other Wait for the units given.
func (t *trial) line(l sluice.Limiter, units ...int) []*caller {
	t.Helper()
	var all []*caller
	for _, n := range units {
		all = append(all, t.join(l, n))
	}
	return all
}

// over says whether Wait has returned.
func (c *caller) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// waits checks that c is still in line.
func (t *trial) waits(c *caller) {
	t.Helper()
	if c.over() {
		require.Fail(t, "Wait must not have returned yet", "it returned %v at %v", c.err, c.at)
	}
}

// goes waits until c returns, and checks that it was granted its units at this instant.
func (t *trial) goes(c *caller, at time.Duration) {
	t.Helper()
	<-c.ended
	require.NoError(t, c.err)
	if t.bubble {
		require.Equal(t, at, c.at, "the instant of its turn")
	}
}

// leaves lets c give up, and checks that its Wait says so, at once.
func (t *trial) leaves(c *caller) {
	t.Helper()
	t.waits(c)
	c.cancel()
	t.atOnce(func() { <-c.ended })
	require.Equal(t, context.Canceled, c.err, "the error of Wait must be ctx's own")
}

// eventually polls on the real clock for what goroutines do beside us.
func (t *trial) eventually(what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(ms / 5) {
		if time.Now().After(end) {
			require.Fail(t, "not within 10s: "+what)
		}
	}
}

// repeat returns n, count times.
func repeat(n, count int) []int {
	all := make([]int, count)
	for i := range all {
		all[i] = n
	}
	return all
}
