package sluicetest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

var leftoverChecks = []check{
	{name: "leftover/no goroutine, timer or memory stays when all have left", run: nothingStays, clock: realTime},
}

// nothingStays drops limiters that everybody has left long before the turns they waited for. One whose timer is still
// armed cannot be collected, so the heap shows what nothing else does.
func nothingStays(t *trial) {
	if t.kind.RealTime {
		t.Skip("cannot be judged: the limiter lives outside the process")
	}
	const limiters, most = 300, 150 // bytes for each: none needs as little while it lives
	t.dropped(limiters)             // fill the pools of the runtime first
	before, goroutines := heap(), runtime.NumGoroutine()
	t.dropped(limiters)
	t.eventually("the goroutines have gone", func() bool { return runtime.NumGoroutine() <= goroutines })
	grown := int64(heap()) - int64(before)
	require.Less(t, grown, int64(limiters*most), "bytes that %d dropped limiters still hold", limiters)
}

// dropped makes limiters, lets callers join their lines and leave, and drops them.
func (t *trial) dropped(limiters int) {
	t.Run("dropped", func(sub *testing.T) {
		made := &trial{T: sub, kind: t.kind, began: t.began}
		for range limiters {
			l := made.spent(hourly, 1)
			first := made.join(l, 1)
			r := made.reserve(l, 1)
			second := made.sleepOn(r)
			made.leaves(first)
			made.leaves(second)
			made.reserve(l, 1).Cancel()
		}
	})
}

func heap() uint64 {
	for range 4 { // a sync.Pool lets go after two
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
