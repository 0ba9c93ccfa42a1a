package sluicetest

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fadf4e53/sluice"
)

// A Kind is what Run needs to know about a kind of limiter.
type Kind struct {
	// New makes a limiter at rest: a full token bucket, an empty leaky bucket of capacity burst. It may be called
	// several times in a case. What must be closed it gives to t.Cleanup. Required.
	New func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter

	// Paced says that starts are 1/rate apart, even after idling: n units go when all that was poured before has
	// run out, and Try pours whatever fits, with a Delay. Default: a token bucket, where up to burst units go at once.
	Paced bool

	// RealTime runs everything on the real clock, for a limiter that lives outside the process, such as in Redis.
	// Cases then judge by decisions and counts, and those that need exact durations are reported as skipped.
	// Default: virtual time.
	RealTime bool

	// Unpromised maps names of cases that this kind never promised to what it promises instead. They are reported as
	// skipped with that text; a name that is no case fails. Default: everything is promised.
	Unpromised map[string]string
}

// Run checks every promise on kind, each in a subtest of t.
func Run(t *testing.T, kind Kind) {
	t.Helper()
	if kind.New == nil {
		t.Fatal("sluicetest: Kind.New is nil: must make a limiter")
	}
	for name := range kind.Unpromised {
		if !slices.ContainsFunc(checks(), func(c check) bool { return c.name == name }) {
			t.Errorf("sluicetest: Kind.Unpromised has %q: must be the name of a case", name)
		}
	}
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) { c.on(t, kind) })
	}
}

// checks returns all cases, in the order in which a reader would doubt them.
func checks() []check {
	return slices.Concat(
		nChecks, ctxChecks, nowChecks, tooLargeChecks, deadlineChecks, lineChecks, leaveChecks, tieChecks,
		tryChecks, toldChecks, reserveChecks, cancelChecks, pauseChecks, statsChecks, lawChecks, stressChecks,
		leftoverChecks,
	)
}

// A check is one case.
type check struct {
	name  string
	run   func(*trial)
	clock clock
	only  nature
}

// A clock says which time a check needs.
type clock int

const (
	anyClock clock = iota // it waits for nothing that takes long, so it can run on either
	virtual               // it compares exact durations
	realTime              // it looks for what only shows when goroutines run side by side, or outside a bubble
)

// A nature says which kinds a check is about.
type nature int

const (
	anyNature nature = iota
	bursts           // Kind.Paced is false
	paces            // Kind.Paced is true
)

func (c check) on(t *testing.T, kind Kind) {
	switch why, unpromised := kind.Unpromised[c.name]; {
	case unpromised:
		t.Skipf("not promised: %s", why)
	case c.only == bursts && kind.Paced:
		t.Skip("does not apply: about a token bucket")
	case c.only == paces && !kind.Paced:
		t.Skip("does not apply: about a pacer")
	case c.clock == virtual && kind.RealTime:
		t.Skip("cannot be judged: needs virtual time")
	}
	if kind.RealTime || c.clock == realTime {
		c.run(&trial{T: t, kind: kind, began: time.Now()})
		return
	}
	synctest.Test(t, func(t *testing.T) {
		c.run(&trial{T: t, kind: kind, began: time.Now(), bubble: true})
	})
}
