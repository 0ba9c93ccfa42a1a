package sluicetest

import (
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

var lineChecks = []check{
	{name: "line/first come, first served, whatever n", run: firstCome, clock: virtual},
	{name: "line/a big n at the head is not overtaken", run: bigHead},
	{name: "line/Try does not overtake", run: tryBehind},
	{name: "line/what has gathered for a big head is nobody else's", run: gatheredIsTheHeads, clock: virtual, only: bursts},
	{name: "line/every turn comes at the first ns that the rate allows", run: everyTurn, clock: virtual},
	{name: "line/who comes between two turns goes at the next", run: betweenTurns, clock: virtual},
	{name: "line/turns are told in the order of coming", run: toldInOrder},
}

func firstCome(t *trial) {
	rate := sluice.PerSecond(10)
	l := t.spent(rate, 5)
	units := []int{5, 1, 3, 1, 1, 5, 2}
	callers := t.line(l, units...)
	ahead := 0
	for i, c := range callers {
		t.goes(c, t.due(rate, ahead, units[i]))
		ahead += units[i]
	}
}

func bigHead(t *trial) {
	l := t.spent(hourly, 5)
	head := t.reserve(l, 5)
	small := t.reserve(l, 1)
	t.lasts(t.due(hourly, 0, 5), head.Delay(), "the head's Delay")
	t.lasts(t.due(hourly, 5, 1), small.Delay(), "the small one's Delay")
	require.Greater(t, small.Delay(), head.Delay())
}

func tryBehind(t *trial) {
	l := t.spent(hourly, 5)
	t.join(l, 5)
	behind := t.due(hourly, 5, 1)
	if d := t.try(l, 1); d.Allowed {
		require.True(t, t.kind.Paced, "Try must not take what those in line wait for")
		t.lasts(behind, d.Delay, "Delay, behind the line")
	} else {
		t.lasts(behind, d.RetryAfter, "RetryAfter, when the line has gone")
	}
}

func gatheredIsTheHeads(t *trial) {
	l := t.spent(sluice.PerSecond(10), 5)
	head := t.join(l, 5)
	t.until(450 * ms) // 4 are there
	require.Equal(t, 150*ms, t.try(l, 1).RetryAfter, "Try, behind the head")
	require.Equal(t, 150*ms, t.reserve(l, 1).Delay(), "Reserve, behind the head")
	small := t.join(l, 1)
	t.waits(small)
	t.goes(head, 500*ms)
	t.goes(small, 700*ms)
}

func everyTurn(t *trial) {
	for _, rate := range []sluice.Rate{
		sluice.PerSecond(10), sluice.PerSecond(3), sluice.PerSecond(7), sluice.PerSecond(1e9 + 1),
		sluice.PerSecond(4e9), sluice.Per(700, time.Minute), sluice.Per(120_000, time.Minute),
		sluice.Per(2000, 24*time.Hour), sluice.Per(1, 30*24*time.Hour),
	} {
		l, began := t.spent(rate, 1), t.since()
		for i, c := range t.line(l, repeat(1, 200)...) {
			t.goes(c, began+t.due(rate, i, 1))
		}
	}
}

func betweenTurns(t *trial) {
	l := t.spent(sluice.PerSecond(10), 1)
	first := t.join(l, 1)
	t.until(40 * ms)
	second := t.join(l, 1)
	t.goes(first, 100*ms)
	t.until(150 * ms)
	third := t.join(l, 1)
	t.goes(second, 200*ms)
	t.goes(third, 300*ms)
	t.until(399 * ms)
	t.goes(t.join(l, 1), 400*ms)
}

func toldInOrder(t *trial) {
	l := t.spent(hourly, 3)
	ahead := 0
	for _, n := range []int{1, 3, 2, 1} {
		t.lasts(t.due(hourly, ahead, n), t.reserve(l, n).Delay(), "Delay")
		ahead += n
	}
}
