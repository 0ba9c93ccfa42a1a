package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

func byType(limits map[string]sluice.Limiter) func(context.Context, *asynq.Task) sluice.Limiter {
	return func(_ context.Context, task *asynq.Task) sluice.Limiter { return limits[task.Type()] }
}

func long(t *testing.T) {
	if os.Getenv("SLUICE_LONG") == "" {
		t.Skip("long")
	}
}

func (w *worker) report(kind string, n int, ideal time.Duration) {
	var last time.Time
	for _, s := range w.all() {
		if s.kind == kind && s.at.After(last) {
			last = s.at
		}
	}
	took := last.Sub(w.begun)
	w.t.Logf("%-8s %d in %v, x%.3f of ideal, peak/s %d", kind, n, took.Round(ms), float64(took)/float64(ideal), w.peak(kind, time.Second))
}

func TestScenarioKeys(t *testing.T) {
	long(t)
	w := newWorker(t)
	limits := map[string]sluice.Limiter{}
	var kinds []string
	for k := range 10 {
		kind := fmt.Sprintf("t:%d", k)
		limits[kind] = limit(t, "10/s", 1)
		for range 100 {
			kinds = append(kinds, kind)
		}
	}
	for range 500 {
		kinds = append(kinds, "t:free")
	}
	rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, k := range kinds {
		w.enqueue(k, 1)
	}
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits)})
	before := w.commands()
	w.run(g, asynq.Config{Concurrency: 20}, nil)
	free := w.await("t:free", 500, 20*time.Second)
	w.await("", 1500, 30*time.Second)
	for k := range limits {
		w.report(k, 100, 9900*ms)
	}
	w.finished("default", 1500)
	w.once()
	t.Logf("free after %v; %d deferrals; %.1f commands a task", free, g.Stats().Deferred, float64(w.commands()-before)/1500)
}

func TestScenarioHead(t *testing.T) {
	long(t)
	w := newWorker(t)
	limits := map[string]sluice.Limiter{"t:a": limit(t, "5/s", 1)}
	w.enqueue("t:a", 300)
	for k := range 9 {
		kind := fmt.Sprintf("t:%d", k)
		limits[kind] = limit(t, "5/s", 1)
		w.enqueue(kind, 10)
	}
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits)})
	before := w.commands()
	w.run(g, asynq.Config{Concurrency: 10}, nil)
	w.await("", 390, 70*time.Second)
	for k := range limits {
		if k == "t:a" {
			w.report(k, 300, 59800*ms)
		} else {
			w.report(k, 10, 1800*ms)
		}
	}
	w.finished("default", 390)
	w.once()
	t.Logf("%d deferrals; %.1f commands a task", g.Stats().Deferred, float64(w.commands()-before)/390)
}

func TestScenarioBacklog(t *testing.T) {
	long(t)
	w := newWorker(t)
	limits := map[string]sluice.Limiter{"t:a": limit(t, "50/s", 1)}
	w.enqueue("t:a", 20000)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(limits)})
	w.run(g, asynq.Config{Concurrency: 10, Queues: map[string]int{"default": 1, "other": 1}}, nil)
	w.enqueue("t:free", 100)
	for range 50 {
		w.enqueue("t:other", 1, asynq.Queue("other"))
		time.Sleep(50 * ms)
	}
	w.await("t:other", 50, 20*time.Second)
	t.Logf("free after %v", w.await("t:free", 100, 20*time.Second))
	w.await("t:a", 1500, 70*time.Second)
	w.report("t:a", 1500, 29980*ms)
	w.once()
	t.Logf("%d deferrals", g.Stats().Deferred)
}

func TestScenarioSlow(t *testing.T) {
	long(t)
	for _, c := range []struct {
		rate string
		n    int
		conc int
		cfg  queue.Config
	}{
		{"50/s", 1000, 100, queue.Config{}},
		{"5/s", 100, 10, queue.Config{}},
		{"50/s", 500, 10, queue.Config{MaxWait: 50 * ms}},
	} {
		w := newWorker(t)
		w.enqueue("t:a", c.n)
		lim := limit(t, c.rate, 1)
		c.cfg.Limiter = lim
		c.cfg.Redis = w.redis
		g := gate(t, c.cfg)
		before := w.commands()
		w.run(g, asynq.Config{Concurrency: c.conc}, nil)
		w.await("t:a", c.n, 60*time.Second)
		w.report("t:a", c.n, lim.Stats().Rate.TimeFor(int64(c.n-1)))
		w.finished("default", c.n)
		t.Logf("%d deferrals; %.1f commands a task", g.Stats().Deferred, float64(w.commands()-before)/float64(c.n))
	}
	require.True(t, true)
}

func TestScenarioFast(t *testing.T) {
	long(t)
	for _, conc := range []int{2, 10, 20} {
		for _, rate := range []string{"50/s", "500/s"} {
			w := newWorker(t)
			lim := limit(t, rate, 1)
			n := int(lim.Stats().Rate.UnitsIn(4 * time.Second))
			w.enqueue("t:a", n)
			g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": lim})})
			w.run(g, asynq.Config{Concurrency: conc}, nil)
			w.await("t:a", n, 60*time.Second)
			t.Logf("%s conc %d", rate, conc)
			w.report("t:a", n, lim.Stats().Rate.TimeFor(int64(n-1)))
			t.Logf("%d deferrals", g.Stats().Deferred)
		}
	}
}
