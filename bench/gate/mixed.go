package main

import (
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/time/rate"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

const ms = time.Millisecond

// work that is under several limits, and under none

func mixed() []scene {
	return []scene{
		{name: "queue a: 60 at 2/s; queue b: 20 unlimited behind them, then one each 100 ms; concurrency 10", who: ours, play: twoQueues},
		{name: "queue a: 60 at 2/s; queue b: 20 unlimited behind them, then one each 100 ms; concurrency 10", who: theirs, play: twoQueuesTheirs},
		{name: "10 keys × 100 at 10/s, shuffled with 500 unlimited, concurrency 20", who: ours, play: tenKeys},
		{name: "10 keys × 100 at 10/s, shuffled with 500 unlimited, concurrency 20", who: theirs, play: tenKeysTheirs},
		{name: "300 of key A (5/s) at the head, then 9 keys × 10 (5/s), concurrency 10", who: ours, play: headOfLine},
		{name: "20,000 of one key (50/s), then 100 unlimited, then 100 more; another queue meanwhile; concurrency 10, 60 s", who: ours, play: backlog},
	}
}

func (w *world) routed(limits map[string]sluice.Limiter) queue.Config {
	return queue.Config{Redis: w.redis, Route: byKind(limits)}
}

func (w *world) fillTwoQueues() {
	w.enqueue("a", 60, asynq.Queue("a"))
	w.enqueue("b", 20, asynq.Queue("b"))
}

var twoQueuesConfig = asynq.Config{Concurrency: 10, Queues: map[string]int{"a": 1, "b": 1}}

// trickle enqueues n tasks, one each interval.
func (w *world) trickle(kind string, n int, every time.Duration, opts ...asynq.Option) {
	for range n {
		w.enqueue(kind, 1, opts...)
		time.Sleep(every)
	}
}

func twoQueues(w *world, r *row) {
	w.fillTwoQueues()
	w.run(w.gate(w.routed(map[string]sluice.Limiter{"a": limit(sluice.PerSecond(2))})), twoQueuesConfig, nil)
	w.until("done", "b", 20, 20*time.Second)
	w.trickle("b", 50, 100*ms, asynq.Queue("b"))
	r.ideal = ideal(60, sluice.PerSecond(2))
	w.until("done", "a", 60, 2*r.ideal)
	time.Sleep(settle)
	r.fillTwoQueues(w)
	r.target(r.median <= 30*ms && r.max <= 150*ms, "b ≤ 30, ≤ 150 ms")
	r.target(r.drain <= r.ideal*103/100, "drain ≤ 1.03")
	r.target(r.deferrals <= 1.05, "deferrals ≤ 1.05")
	r.unharmed()
}

func (r *row) fillTwoQueues(w *world) {
	r.free = true
	r.drain = w.last("a").Sub(w.begun)
	r.median, r.max = latency(w.all("start", "b"), w.begun)
	r.fill(w, map[string]int{"a": 2})
}

func twoQueuesTheirs(w *world, r *row) {
	w.fillTwoQueues()
	w.recipe(map[string]*rate.Limiter{"a": rate.NewLimiter(2, 1)}, twoQueuesConfig, nil)
	w.until("done", "b", 20, 20*time.Second)
	w.trickle("b", 50, 100*ms, asynq.Queue("b"))
	r.ideal = ideal(60, sluice.PerSecond(2))
	w.until("done", "a", 60, patience)
	time.Sleep(settle)
	r.fillTwoQueues(w)
	r.endOr()
}

// endOr leaves the drain out where there was no end.
func (r *row) endOr() {
	if r.done < r.of {
		r.drain = 0
		r.notes = append(r.notes, "watched for "+patience.String())
	}
}

func (w *world) shuffled() {
	var kinds []string
	for k := range 10 {
		for range 100 {
			kinds = append(kinds, key(k))
		}
	}
	for range 500 {
		kinds = append(kinds, "free")
	}
	rand.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds {
		w.enqueue(kind, 1)
	}
}

func rates(keys, perSecond int) (map[string]sluice.Limiter, map[string]int) {
	limits, law := map[string]sluice.Limiter{}, map[string]int{}
	for k := range keys {
		limits[key(k)], law[key(k)] = limit(sluice.PerSecond(int64(perSecond))), perSecond
	}
	return limits, law
}

func tenKeys(w *world, r *row) {
	limits, law := rates(10, 10)
	w.shuffled()
	w.run(w.gate(w.routed(limits)), asynq.Config{Concurrency: 20}, nil)
	r.ideal = ideal(100, sluice.PerSecond(10))
	w.until("done", "", 1500, 3*r.ideal)
	time.Sleep(settle)
	r.drain, r.free = w.last("").Sub(w.begun), true
	r.median, r.max = latency(w.all("start", "free"), w.begun)
	r.fill(w, law)
	r.target(r.max <= 800*ms, "unlimited all done ≤ 0.8 s")
	r.target(r.drain <= r.ideal*103/100, "drain ≤ 1.03")
	r.target(r.deferrals <= 1.05, "deferrals ≤ 1.05")
	r.target(r.commands <= 38, "commands ≤ 38")
	r.unharmed()
}

func tenKeysTheirs(w *world, r *row) {
	_, law := rates(10, 10)
	limits := map[string]*rate.Limiter{}
	for kind := range law {
		limits[kind] = rate.NewLimiter(10, 1)
	}
	w.shuffled()
	w.recipe(limits, asynq.Config{Concurrency: 20}, nil)
	r.ideal = ideal(100, sluice.PerSecond(10))
	w.until("done", "", 1500, patience)
	time.Sleep(settle)
	r.drain, r.free = w.last("").Sub(w.begun), true
	r.median, r.max = latency(w.all("start", "free"), w.begun)
	r.fill(w, law)
	r.endOr()
}

func headOfLine(w *world, r *row) {
	limits, law := rates(10, 5)
	w.enqueue(key(0), 300)
	for range 10 {
		for k := 1; k < 10; k++ {
			w.enqueue(key(k), 1)
		}
	}
	w.run(w.gate(w.routed(limits)), asynq.Config{Concurrency: 10}, nil)
	r.ideal = ideal(300, sluice.PerSecond(5))
	w.until("done", "", 390, 2*r.ideal)
	time.Sleep(settle)
	var nine time.Time
	for k := 1; k < 10; k++ {
		if last := w.last(key(k)); last.After(nine) {
			nine = last
		}
	}
	r.drain = w.last(key(0)).Sub(w.begun)
	r.fill(w, law)
	took, want := nine.Sub(w.begun), ideal(10, sluice.PerSecond(5))
	r.target(took <= want*13/10, "the nine at %.2f × ideal, ≤ 1.3", took.Seconds()/want.Seconds())
	r.target(r.drain <= r.ideal*103/100, "A ≤ 1.03")
	r.target(r.deferrals <= 1.05, "deferrals ≤ 1.05")
	r.unharmed()
}

func backlog(w *world, r *row) {
	const n, watch = 20000, 60 * time.Second
	w.enqueue("a", n)
	w.enqueue("first", 100)
	w.run(w.gate(w.routed(map[string]sluice.Limiter{"a": limit(sluice.PerSecond(50))})),
		asynq.Config{Concurrency: 10, Queues: map[string]int{"default": 1, "other": 1}}, nil)
	for w.n("start", "first") == 0 && time.Since(w.begun) < 30*time.Second {
		w.trickle("other", 1, 30*ms, asynq.Queue("other"))
	}
	w.until("start", "first", 100, 10*time.Second)
	first := w.all("start", "first")
	check(enough(first, 100))
	swept, spread := first[0].At.Sub(w.begun), first[99].At.Sub(first[0].At)
	w.trickle("then", 100, 30*ms)
	time.Sleep(time.Until(w.begun.Add(watch)))
	r.fill(w, map[string]int{"a": 50})
	r.lost = 0 // watched, not ended
	r.free = true
	r.median, r.max = latency(w.all("start", "then"), w.begun)
	otherMedian, other := latency(w.all("start", "other"), w.begun)
	started, gap := w.n("start", "a"), w.gap("a", w.begun, w.begun.Add(watch))
	deferrals := float64(w.n("defer", "a")) / n // not a finished task, as elsewhere: most are not to finish here
	r.deferrals = deferrals
	r.target(swept <= 8*time.Second, "looked at once in %s, ≤ 8 s", short(swept))
	r.target(spread <= 150*ms, "the 100 behind it within %s, ≤ 150 ms", short(spread))
	r.target(w.n("start", "then") == 100 && r.max <= 150*ms, "100 more ≤ 150 ms each")
	r.target(other <= 50*ms, "other queue meanwhile %s, %s of %d, ≤ 50 ms", short(otherMedian), short(other), w.n("start", "other"))
	r.target(started >= 2970 && gap <= 250*ms, "%d starts of 3,001 in 60 s, longest gap %s", started, short(gap))
	r.target(deferrals <= 1.1, "deferrals of each of the 20,000 ≤ 1.1")
	r.unharmed()
}
