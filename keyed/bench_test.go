package keyed_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

// BenchmarkTryHotKey reports how much longer Try takes through the Map than on the bare limiter, both measured in
// turns in the same run. Target: 2.5.
func BenchmarkTryHotKey(b *testing.B) {
	for name, evict := range map[string]keyed.Eviction{"IdleOnly": keyed.IdleOnly, "Oldest": keyed.Oldest} {
		b.Run(name, func(b *testing.B) {
			bare := newWaiter(b, sluice.PerSecond(1e9), 1<<40)
			m := newMap(b, 10_000, evict, func(string) (sluice.Limiter, error) {
				return newWaiter(b, sluice.PerSecond(1e9), 1<<40), nil
			})
			keys := names(10_000)
			for _, k := range keys {
				take(b, m, k)
			}
			ctx := context.Background()
			const turn = 1000
			var direct, through time.Duration
			b.ReportAllocs()
			for i := 0; b.Loop(); i += turn {
				start := time.Now()
				for range turn {
					if d, err := bare.Try(ctx, 1); err != nil || !d.Allowed {
						b.Fatal(d, err)
					}
				}
				middle := time.Now()
				for range turn {
					if d, err := m.Try(ctx, "1234", 1); err != nil || !d.Allowed {
						b.Fatal(d, err)
					}
				}
				direct, through = direct+middle.Sub(start), through+time.Since(middle)
			}
			b.ReportMetric(float64(direct.Nanoseconds())/float64(b.N*turn), "bare-ns/op")
			b.ReportMetric(float64(through.Nanoseconds())/float64(b.N*turn), "keyed-ns/op")
			b.ReportMetric(through.Seconds()/direct.Seconds(), "keyed/bare")
		})
	}
}

// BenchmarkTryParallel compares 10,000 keys in one Map, asked from all cores, with the same limiters in a plain slice:
// what is more than that is what sharding could save.
func BenchmarkTryParallel(b *testing.B) {
	keys := names(10_000)
	made := map[string]sluice.Limiter{}
	m := newMap(b, len(keys), keyed.IdleOnly, func(k string) (sluice.Limiter, error) {
		made[k] = newWaiter(b, sluice.PerSecond(1e9), 1<<40)
		return made[k], nil
	})
	var bare []sluice.Limiter
	for _, k := range keys {
		take(b, m, k)
		bare = append(bare, made[k])
	}
	run := func(name string, try func(i int) (sluice.Decision, error)) {
		b.Run(name, func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if d, err := try(i % len(keys)); err != nil || !d.Allowed {
						b.Error(d, err)
						return
					}
				}
			})
		})
	}
	ctx := context.Background()
	run("bare", func(i int) (sluice.Decision, error) { return bare[i].Try(ctx, 1) })
	run("keyed", func(i int) (sluice.Decision, error) { return m.Try(ctx, keys[i], 1) })
}

func BenchmarkWaitHotKey(b *testing.B) {
	m := newMap(b, 10, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
		return newWaiter(b, sluice.PerSecond(1e9), 1<<40), nil
	})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Wait(ctx, "k", 1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMemory reports the bytes a key costs beyond its own limiter and its own text. Target: 250.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	for name, evict := range map[string]keyed.Eviction{"IdleOnly": keyed.IdleOnly, "Oldest": keyed.Oldest} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				keys := names(n)
				all := make([]sluice.Limiter, n)
				for i := range all {
					all[i] = newWaiter(b, sluice.Every(time.Hour), 1)
				}
				next := 0
				before := heap()
				m := newMap(b, n, evict, func(string) (sluice.Limiter, error) {
					next++
					return all[next-1], nil
				})
				start := time.Now()
				for _, k := range keys {
					take(b, m, k)
				}
				took := time.Since(start)
				b.ReportMetric(float64(heap()-before)/n, "bytes/key")
				b.ReportMetric(float64(took.Nanoseconds())/n, "ns/new-key")
				require.Equal(b, n, m.Len())
				runtime.KeepAlive(keys)
				runtime.KeepAlive(all)
			}
		})
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

// BenchmarkRefusedNewKey is a flood of new keys against a full Map: each refusal is to cost the same, however many keys
// there are.
func BenchmarkRefusedNewKey(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newMap(b, n, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
				return waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 1})
			})
			for _, k := range names(n) {
				take(b, m, k)
			}
			ctx := context.Background()
			start := time.Now()
			for { // the first ones look at all keys, a millisecond each
				if d, err := m.Try(ctx, "more", 1); err != nil || d.Allowed {
					b.Fatal(d, err)
				} else if d.RetryAfter > time.Minute {
					break
				}
			}
			b.ReportMetric(float64(time.Since(start).Milliseconds()), "first-look-ms")
			b.ReportAllocs()
			for b.Loop() {
				if d, err := m.Try(ctx, "more", 1); err != nil || d.Allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}

// BenchmarkChurn replaces a key at rest on each call.
func BenchmarkChurn(b *testing.B) {
	for _, n := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newMap(b, n, keyed.IdleOnly, func(string) (sluice.Limiter, error) {
				return waiter.New(waiter.Config{Rate: sluice.PerSecond(1e9), Burst: 1})
			})
			keys := names(2 * n)
			for _, k := range keys {
				take(b, m, k)
			}
			for i := 0; b.Loop(); i++ {
				take(b, m, keys[i%len(keys)])
			}
		})
	}
}
