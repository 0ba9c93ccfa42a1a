package main

import (
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

// workers that end, are killed, lose Redis, or are several

func crashes() []scene {
	durable := []string{"--appendonly", "yes", "--appendfsync", "always"}
	return []scene{
		{name: "Drain, then Shutdown, all 10 slots waiting", who: ours, play: drainAndShutdown},
		{name: "kill -9 of a worker, 60 tasks at 10/s, concurrency 8; a second worker goes on", who: ours, play: killed},
		{name: "redis-server stopped for 3 s (AOF), 150 tasks at 10/s", who: ours, play: stopped, redis: durable},
		{name: "two processes, one cluster-wide limit of 5/s, 75 tasks", who: ours, play: func(w *world, r *row) { twoProcesses(w, r, 75, 5) }},
		{name: "two processes, one cluster-wide limit of 100/s, 1,000 tasks", who: ours, play: func(w *world, r *row) { twoProcesses(w, r, 1000, 100) }},
	}
}

func drainAndShutdown(w *world, r *row) {
	lim := limit(sluice.Per(1, time.Minute))
	w.enqueue("a", 31)
	g := w.gate(queue.Config{Limiter: lim, Redis: w.redis})
	srv := w.serve(g.Configure(w.failures(asynq.Config{Concurrency: 10})), g.Middleware, nil)
	w.when(10*time.Second, func() bool { time.Sleep(ms); w.poke(); return g.Stats().Waiting == 10 })
	srv.Stop()
	begun := time.Now()
	g.Drain()
	for g.Stats().Waiting > 0 {
		time.Sleep(ms / 10)
	}
	free := time.Since(begun)
	srv.Shutdown()
	down := time.Since(begun)
	r.fill(w, map[string]int{"a": 0})
	left, _, _ := w.inRedis()
	r.target(free <= 50*ms, "slots free after %s", short(free))
	r.target(down <= 150*ms, "Shutdown after %s", short(down))
	r.target(left == 30 && r.done == 1, "%d of 30 back in the queue", left)
	r.unharmed()
}

func killed(w *world, r *row) {
	w.enqueue("a", 60, asynq.MaxRetry(3))
	first := w.process(spec{Rate: 10, Slots: 8})
	w.until("start", "", 10, 20*time.Second)
	first.kill()
	at, done := time.Now(), w.n("done", "")
	untold := w.untold()
	w.process(spec{Rate: 10, Slots: 8})
	// Those that waited in place, or were on their way back from it, are Asynq's to recover: it takes a minute or two.
	stuck := 8
	w.until("done", "", 60-stuck, 60*time.Second)
	deferred := w.last("").Sub(at)
	want := ideal(60-stuck-done, sluice.PerSecond(10))
	w.when(180*time.Second, func() bool { return w.distinct("done") == 60 })
	time.Sleep(settle)
	r.drain = w.last("").Sub(w.begun)
	r.fill(w, map[string]int{"a": 10})
	// Each has its place in the virtual queue, two seconds, the rest of that second, and a tick; then it may wait in place.
	r.target(deferred <= want+5*time.Second, "the deferred ones in %s, %s at their rate", short(deferred), short(want))
	r.target(w.distinct("done") == 60 && r.twice <= untold,
		"all done; %d twice, %d had ended when Asynq had not been told yet", r.twice, untold)
	r.target(r.retried <= stuck, "%d were Asynq's to recover, with a retry used", r.retried)
	r.failed, r.retried, r.lost, r.twice = 0, 0, 0, 0
	r.unharmed()
}

// untold counts the tasks that are done, but not in Asynq's books. It runs them again, with a Gate or without.
func (w *world) untold() (n int) {
	active, err := w.insp.ListActiveTasks("default", asynq.PageSize(1000))
	check(err)
	for _, e := range w.all("done", "") {
		if slices.ContainsFunc(active, func(t *asynq.TaskInfo) bool { return t.ID == e.ID }) {
			n++
		}
	}
	return n
}

func stopped(w *world, r *row) {
	w.enqueue("a", 150)
	w.run(w.gate(w.routed(map[string]sluice.Limiter{"a": limit(sluice.PerSecond(10))})), asynq.Config{Concurrency: 10}, nil)
	w.until("start", "", 20, 20*time.Second)
	w.server.kill()
	down := time.Now()
	time.Sleep(3 * time.Second)
	check(w.server.start())
	up := time.Now()
	r.ideal = ideal(150, sluice.PerSecond(10)) + 3*time.Second
	w.until("start", "", 150, 3*r.ideal)
	time.Sleep(settle)
	r.drain = w.last("").Sub(w.begun)
	r.fill(w, map[string]int{"a": 10})
	var again time.Duration
	for _, e := range w.all("start", "") {
		if e.At.After(up) {
			again = e.At.Sub(up)
			break
		}
	}
	r.notes = append(r.notes, "down for "+short(up.Sub(down))+", first start "+short(again)+" after")
	r.target(r.done == 150, "goes on by itself")
	r.lost = 0 // done, though Asynq may not have been told: see twice
	r.unharmed()
}

func twoProcesses(w *world, r *row, n int, rate int64) {
	w.enqueue("a", n)
	for range 2 {
		w.process(spec{Rate: rate, Slots: 10, Cluster: true})
	}
	r.ideal = ideal(n, sluice.PerSecond(rate))
	w.until("done", "", n, 4*r.ideal)
	time.Sleep(settle)
	all := w.all("start", "")
	check(enough(all, 1))
	r.drain = w.last("").Sub(all[0].At) // a process takes its time to start
	r.fill(w, map[string]int{"a": int(rate)})
	most := w.mostDeferred()
	r.target(r.drain <= r.ideal*105/100, "drain ≤ 1.05")
	r.target(r.deferrals <= 1.2 && most <= 3, "deferrals ≤ 1.2, the most %d ≤ 3", most)
	r.unharmed()
}
