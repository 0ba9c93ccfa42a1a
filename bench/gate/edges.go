package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/time/rate"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// tasks with no retry left, little time left, or a handler that was told to slow down

func edges() []scene {
	var list []scene
	for _, c := range []struct {
		name   string
		routed bool
		max    time.Duration
	}{{"Limiter", false, 0}, {"Limiter, MaxWait 50 ms", false, 50 * ms}, {"Route", true, 0}} {
		list = append(list, scene{name: "300 tasks MaxRetry(0) and 20 on their last attempt at 50/s; " + c.name, who: ours,
			play: func(w *world, r *row) { lastAttempts(w, r, c.routed, c.max) }})
	}
	return append(list,
		scene{name: "300 tasks MaxRetry(0) at 50/s", who: theirs, play: lastAttemptsTheirs},
		scene{name: "50 tasks Timeout(2s), MaxRetry(1), at 5/s", who: ours, play: shortTimeout},
		scene{name: "40 tasks, 30 of them MaxRetry(0), with a Deadline in 6 s at 2/s", who: ours, play: deadlines},
		scene{name: "Backoff(3s) under 50/s, others at 20/s and unlimited", who: ours, play: backoff},
	)
}

var errOwn = errors.New("the handler's own failure")

func lastAttempts(w *world, r *row, routed bool, maxWait time.Duration) {
	w.enqueue("last", 20, asynq.MaxRetry(1))
	w.enqueue("last", 300, asynq.MaxRetry(0))
	lim := limit(sluice.PerSecond(50))
	cfg := queue.Config{Limiter: lim, MaxWait: maxWait}
	if routed {
		cfg = w.routed(map[string]sluice.Limiter{"last": lim})
	}
	w.run(w.gate(cfg), asynq.Config{Concurrency: 10, RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return 0 }},
		func(ctx context.Context, _ *asynq.Task) error {
			most, _ := asynq.GetMaxRetry(ctx)
			if retried, _ := asynq.GetRetryCount(ctx); most == 1 && retried == 0 {
				return errOwn
			}
			return nil
		})
	r.ideal = ideal(340, sluice.PerSecond(50))
	w.until("done", "", 320, 3*r.ideal)
	time.Sleep(settle)
	r.drain = w.last("").Sub(w.begun)
	r.fill(w, map[string]int{"last": 50})
	r.failed -= 20 // the handler's own
	r.retried -= 20
	r.target(r.archived == 0 && r.failed == 0 && r.done == 320, "none archived or failed for waiting")
	r.unharmed()
}

func lastAttemptsTheirs(w *world, r *row) {
	w.enqueue("last", 300, asynq.MaxRetry(0))
	w.recipe(map[string]*rate.Limiter{"last": rate.NewLimiter(50, 1)}, asynq.Config{Concurrency: 10}, nil)
	w.until("done", "", 300, 10*time.Second)
	time.Sleep(settle)
	r.fill(w, map[string]int{"last": 50})
}

func shortTimeout(w *world, r *row) {
	w.enqueue("a", 50, asynq.Timeout(2*time.Second), asynq.MaxRetry(1))
	w.run(w.gate(queue.Config{Redis: w.redis, Limiter: limit(sluice.PerSecond(5))}), asynq.Config{Concurrency: 10}, nil)
	r.ideal = ideal(50, sluice.PerSecond(5))
	w.until("done", "", 50, 3*r.ideal)
	time.Sleep(settle)
	r.drain = w.last("").Sub(w.begun)
	r.fill(w, map[string]int{"a": 5})
	r.target(r.done == 50 && w.n("fail", "") == 0, "none fails or is retried for waiting")
	r.target(r.drain <= r.ideal*105/100, "drain ≤ 1.05")
	r.unharmed()
}

func deadlines(w *world, r *row) {
	end := time.Now().Truncate(time.Second).Add(7 * time.Second)
	w.enqueue("a", 30, asynq.Deadline(end), asynq.MaxRetry(0))
	w.enqueue("a", 10, asynq.Deadline(end), asynq.MaxRetry(3))
	var clear atomic.Int32
	g := w.gate(w.routed(map[string]sluice.Limiter{"a": limit(sluice.PerSecond(2))}))
	cfg := g.Configure(asynq.Config{Concurrency: 10, ErrorHandler: asynq.ErrorHandlerFunc(
		func(_ context.Context, t *asynq.Task, err error) {
			if errors.Is(err, sluice.ErrDeadline) {
				clear.Add(1)
			}
			w.add(event{What: "fail", Kind: t.Type(), At: time.Now()})
		})})
	srv := w.serve(cfg, g.Middleware, nil)
	w.ends = append(w.ends, func() { srv.Stop(); g.Drain(); srv.Shutdown() })
	possible := int(end.Sub(w.begun).Seconds()*2) + 1
	time.Sleep(time.Until(end.Add(settle)))
	r.fill(w, map[string]int{"a": 2})
	late := 0
	for _, e := range w.all("start", "") {
		if e.At.After(end) {
			late++
		}
	}
	r.target(r.done >= possible-1 && late == 0, "%d started in time, the limit allows %d", r.done, possible)
	fails := w.n("fail", "")
	r.target(int(clear.Load()) == fails, "%d failed, %d of them with ErrDeadline", fails, clear.Load())
	if r.lost > 0 {
		r.target(false, "%d lost", r.lost)
	}
}

func backoff(w *world, r *row) {
	limits := map[string]sluice.Limiter{"a": limit(sluice.PerSecond(50)), "b": limit(sluice.PerSecond(20))}
	w.enqueue("a", 100, asynq.Queue("a"))
	w.enqueue("b", 100, asynq.Queue("b"))
	var once sync.Once
	var told time.Time
	w.run(w.gate(w.routed(limits)), asynq.Config{Concurrency: 20, Queues: map[string]int{"a": 1, "b": 1}},
		func(_ context.Context, t *asynq.Task) (err error) {
			if t.Type() == "a" {
				once.Do(func() { told = time.Now(); err = fmt.Errorf("429: %w", queue.Backoff(3*time.Second)) })
			}
			return err
		})
	w.trickle("free", 30, 100*ms, asynq.Queue("b"))
	w.until("done", "", 230, 30*time.Second)
	time.Sleep(settle)
	during, others := 0, 0
	for _, e := range w.all("start", "") {
		if e.At.After(told.Add(ms)) && e.At.Before(told.Add(3*time.Second)) {
			if e.Kind == "a" {
				during++
			} else if e.Kind == "b" {
				others++
			}
		}
	}
	r.free = true
	r.ideal, r.drain = 3*time.Second+ideal(101, sluice.PerSecond(50)), w.last("a").Sub(w.begun)
	r.median, r.max = latency(w.all("start", "free"), w.begun)
	r.fill(w, map[string]int{"a": 50, "b": 20})
	r.target(during == 0, "%d starts under it in those 3 s", during)
	r.target(others >= 55, "%d of the others meanwhile", others)
	r.target(r.done == 230, "the task itself came back")
	r.unharmed()
}

func enough(list []event, n int) error {
	if len(list) < n {
		return fmt.Errorf("%d of %d tasks have started", len(list), n)
	}
	return nil
}
