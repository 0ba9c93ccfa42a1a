package sluicetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var tryChecks = []check{
	{name: "try/exactly the burst is allowed, each other one told how long", run: tryTheBurst},
	{name: "try/refused changes nothing", run: refusedTry},
	{name: "try/refused as often as you like, the next unit comes when it is due", run: refusedOften, clock: virtual},
	{name: "try/allowed at the ns it is due, and not 1ns before", run: tryBoundary, clock: virtual},
	{name: "try/a pacer tells when to start", run: tryTellsStart, clock: virtual, only: paces},
	{name: "try/what a pacer told stays true", run: toldStaysTrue, clock: virtual, only: paces},
}

func tryTheBurst(t *trial) {
	l := t.rested(hourly, 10)
	var allowed atomic.Int64
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			d, err := l.Try(background, 1)
			switch {
			case err != nil:
				t.Errorf("Try: %v", err)
			case d.Allowed:
				allowed.Add(1)
			case d.RetryAfter <= 0:
				t.Errorf("refused with RetryAfter %v: must be positive", d.RetryAfter)
			}
		})
	}
	callers.Wait()
	require.EqualValues(t, 10, allowed.Load(), "of 50 calls")
}

func refusedTry(t *trial) {
	l := t.exhausted(hourly, 3)
	refused := l.Stats().Refused
	t.takesNothing(l, func() {
		for range 20 {
			require.False(t, t.try(l, 1).Allowed)
			require.False(t, t.try(l, 3).Allowed)
		}
	})
	require.Equal(t, refused+40, l.Stats().Refused)
}

func refusedOften(t *trial) {
	l := t.exhausted(sluice.PerSecond(2), 3)
	for t.since() < 500*ms {
		d := t.try(l, 1)
		require.False(t, d.Allowed, "at %v", t.since())
		require.Equal(t, 500*ms-t.since(), d.RetryAfter)
		time.Sleep(1 * ms)
	}
	require.True(t, t.try(l, 1).Allowed)
}

func tryBoundary(t *trial) {
	l := t.rested(sluice.PerSecond(2), 3)
	for _, s := range []struct {
		at      time.Duration
		allowed []bool
	}{
		{0, []bool{true, true, true, false}},
		{499 * ms, []bool{false}},
		{500*ms - 1, []bool{false}},
		{500 * ms, []bool{true, false}},
		{10 * time.Second, []bool{true, true, true, false}},
	} {
		t.until(s.at)
		for i, want := range s.allowed {
			require.Equal(t, want, t.try(l, 1).Allowed, "call %d at %v", i+1, s.at)
		}
	}
}

func tryTellsStart(t *trial) {
	l := t.rested(sluice.PerSecond(50), 5)
	for i := range 5 {
		d := t.try(l, 1)
		require.True(t, d.Allowed)
		require.Equal(t, time.Duration(i)*20*ms, d.Delay)
	}
	d := t.try(l, 1)
	require.False(t, d.Allowed, "the bucket is full")
	require.Equal(t, 20*ms, d.RetryAfter)
}

func toldStaysTrue(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	leaver := t.join(l, 1) // 100ms
	require.Equal(t, 200*ms, t.try(l, 1).Delay)
	behind := t.line(l, 1, 1) // 300ms, 400ms
	t.leaves(leaver)          // makes a hole at 100ms
	require.Equal(t, 400*ms, t.try(l, 1).Delay, "the hole is filled by the line, the told start stands")
	t.goes(behind[0], 100*ms)
	t.goes(behind[1], 300*ms)
}
