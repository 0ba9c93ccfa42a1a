package main

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

var background = context.Background()

// settle lets what the last measurement left behind be collected.
func settle() {
	runtime.GC()
	time.Sleep(20 * time.Millisecond)
}

func scenes() []scene {
	return []scene{
		{
			name: "Wait with a token free", what: "One goroutine, then one on each core. The bare clock is one time.Since.",
			columns: []string{"ns", "allocations", "ns, all cores"}, format: []string{"%.1f", "%.2f", "%.1f"}, run: free,
		},
		{
			name: "Try refused", what: "One goroutine, an empty bucket.",
			columns: []string{"ns", "allocations"}, format: []string{"%.1f", "%.2f"}, run: refused,
		},
		line(1_000, 1_000), line(100_000, 50_000), line(1_000_000, 250_000),
		{
			name: "Half the line leaves", what: "1,000 in line at 1,000/s; the first 500 give up after 5 ms. Ideal: the rest is through in 0.5 s.",
			columns: []string{"time ÷ ideal"}, format: []string{"%.2f"}, run: leave,
		},
		loop(1_000), loop(10_000), loop(30_000),
		{
			name: "Lateness", what: "500 in line at 1,000/s, burst 1: how long after its place in the schedule each comes back.",
			columns: []string{"p50 ms", "p99 ms"}, format: []string{"%.2f", "%.2f"}, run: lateness,
		},
		over(100), over(10_000), over(1_000_000),
	}
}

// perCall returns ns and allocations of a call of f.
func perCall(f func()) (ns, allocations float64) {
	const calls = 300_000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	for range calls {
		f()
	}
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	return float64(took.Nanoseconds()) / calls, float64(after.Mallocs-before.Mallocs) / calls
}

func free(p peer) []float64 {
	s := p.make(always, plenty)
	wait := func() { _ = s.wait(background) }
	ns, allocations := perCall(wait)
	const calls = 300_000
	var wg sync.WaitGroup
	start := time.Now()
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for range calls {
				wait()
			}
		})
	}
	wg.Wait()
	all := float64(calls * runtime.GOMAXPROCS(0))
	return []float64{ns, allocations, float64(time.Since(start).Nanoseconds()) / all}
}

func refused(p peer) []float64 {
	s := p.make(1, 1)
	if s.try == nil {
		return nil
	}
	s.try()
	ns, allocations := perCall(func() { s.try() })
	return []float64{ns, allocations}
}

// warm leaves n finished goroutines behind, which the runtime reuses: else the first to be measured pays for them.
func warm(n int) {
	var wg sync.WaitGroup
	hold := make(chan struct{})
	for range n {
		wg.Go(func() { <-hold })
	}
	close(hold)
	wg.Wait()
	settle()
}

// line measures n callers who all stand in line at once.
func line(n, perSecond int) scene {
	return scene{
		name:    group(n) + " blocked callers",
		what:    "At " + group(perSecond) + "/s, burst 1. Ideal: " + (time.Duration(n) * time.Second / time.Duration(perSecond)).String() + ".",
		columns: []string{"CPU µs a wait", "bytes a waiter", "drain ÷ ideal"}, format: []string{"%.2f", "%.0f", "%.2f"},
		run: func(p peer) []float64 {
			warm(n)
			s := p.make(perSecond, 1)
			ctx, cancel := context.WithCancel(background) // as a server's are
			defer cancel()
			_ = s.wait(ctx)
			var before, during runtime.MemStats
			runtime.ReadMemStats(&before)
			start, used := time.Now(), cpu()
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() { _ = s.wait(ctx) })
			}
			runtime.ReadMemStats(&during)
			bytes := math.NaN() // if most have gone before all had come
			if waiting := float64(n) - time.Since(start).Seconds()*float64(perSecond); waiting > float64(n)/2 {
				bytes = (float64(during.HeapInuse+during.StackInuse) - float64(before.HeapInuse+before.StackInuse)) / waiting
			}
			wg.Wait()
			took := time.Since(start).Seconds()
			return []float64{
				float64((cpu() - used).Microseconds()) / float64(n), bytes,
				took / (float64(n) / float64(perSecond)),
			}
		},
	}
}

func leave(p peer) []float64 {
	if p.name == "uber-go/ratelimit" || p.name == "juju/ratelimit" {
		return nil // no context: nobody can leave
	}
	s := p.make(1000, 1)
	_ = s.wait(background)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	var left, rest sync.WaitGroup
	for range 500 {
		left.Go(func() { _ = s.wait(ctx) })
	}
	time.Sleep(2 * time.Millisecond) // all of them stand before the others
	start := time.Now()
	for range 500 {
		rest.Go(func() { _ = s.wait(background) })
	}
	time.Sleep(3 * time.Millisecond)
	cancel()
	rest.Wait()
	took := time.Since(start)
	left.Wait()
	return []float64{took.Seconds() / 0.5}
}

// loop measures one goroutine that calls Wait again and again.
func loop(perSecond int) scene {
	return scene{
		name: "A loop at " + group(perSecond) + "/s", what: "One goroutine, burst 1, one second: the share of the rate that it reaches.",
		columns: []string{"share"}, format: []string{"%.3f"},
		run: func(p peer) []float64 {
			s := p.make(perSecond, 1)
			_ = s.wait(background)
			start, n := time.Now(), 0
			for time.Since(start) < time.Second {
				_ = s.wait(background)
				n++
			}
			return []float64{float64(n) / (time.Since(start).Seconds() * float64(perSecond))}
		},
	}
}

func lateness(p peer) []float64 {
	const n, perSecond = 500, 1000
	s := p.make(perSecond, 1)
	_ = s.wait(background)
	start := time.Now()
	back := make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			_ = s.wait(background)
			back[i] = time.Since(start)
		})
	}
	wg.Wait()
	slices.Sort(back)
	for i := range back {
		back[i] -= time.Duration(i+1) * time.Second / perSecond
	}
	slices.Sort(back)
	return []float64{float64(at(back, 0.5).Microseconds()) / 1000, float64(at(back, 0.99).Microseconds()) / 1000}
}

// over measures what 1,000 goroutines that try without a pause get, against what the limit allows.
func over(perSecond int) scene {
	return scene{
		name: "1,000 goroutines try at " + group(perSecond) + "/s", what: "Burst 1, for 2 s: admitted ÷ allowed. More than 1 is a broken limit.",
		columns: []string{"admitted ÷ allowed"}, format: []string{"%.3f"},
		run: func(p peer) []float64 {
			s := p.make(perSecond, 1)
			if s.try == nil {
				return nil
			}
			var admitted atomic.Int64
			var stop atomic.Bool
			var wg sync.WaitGroup
			start := time.Now()
			for range 1000 {
				wg.Go(func() {
					for !stop.Load() {
						if s.try() {
							admitted.Add(1)
						}
					}
				})
			}
			time.Sleep(2 * time.Second)
			stop.Store(true)
			wg.Wait()
			allowed := 1 + time.Since(start).Seconds()*float64(perSecond)
			return []float64{float64(admitted.Load()) / allowed}
		},
	}
}
