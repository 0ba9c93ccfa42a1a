package main

import (
	"fmt"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/time/rate"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
)

const (
	ours   = "sluice"
	theirs = "recipe"
)

// settle is how long Asynq may take to write down what has just been done.
const settle = 300 * time.Millisecond

// patience is how long the recipe, which mostly does not end, is watched.
const patience = 60 * time.Second

func scenes() []scene {
	var all []scene
	add := func(list ...scene) { all = append(all, list...) }
	add(drains(1000, 50, 10, 14.5)...)
	add(drains(1000, 50, 100, 14.5)...)
	add(drains(100, 5, 10, 0)...)
	add(mixed()...)
	add(edges()...)
	add(crashes()...)
	return all
}

// drains has n tasks under one limit.
func drains(n, perSecond, slots int, commands float64) []scene {
	name := fmt.Sprintf("%d tasks, one limit %d/s, concurrency %d", n, perSecond, slots)
	want := ideal(n, sluice.PerSecond(int64(perSecond)))
	finish := func(w *world, r *row) {
		time.Sleep(settle)
		r.drain, r.ideal = w.last("").Sub(w.begun), want
		r.fill(w, map[string]int{"a": perSecond})
	}
	list := []scene{{name: name, who: ours, play: func(w *world, r *row) {
		w.enqueue("a", n)
		w.run(w.gate(queue.Config{Limiter: limit(sluice.PerSecond(int64(perSecond)))}), asynq.Config{Concurrency: slots}, nil)
		w.until("done", "", n, 2*want)
		finish(w, r)
		r.target(r.drain <= want*102/100, "drain ≤ 1.02")
		r.target(r.deferrals == 0, "no deferral")
		if commands > 0 {
			r.target(r.commands <= commands, "commands ≤ %.1f", commands)
		}
		r.unharmed()
	}}}
	for _, burst := range []int{1, perSecond} {
		if burst > 1 && (slots != 10 || perSecond != 50) {
			continue
		}
		who := fmt.Sprintf("%s, burst %d", theirs, burst)
		list = append(list, scene{name: name, who: who, play: func(w *world, r *row) {
			w.enqueue("a", n)
			w.recipe(map[string]*rate.Limiter{"a": rate.NewLimiter(rate.Limit(perSecond), burst)}, asynq.Config{Concurrency: slots}, nil)
			within := patience
			if burst > 1 {
				within *= 2
			}
			w.until("done", "", n, within)
			finish(w, r)
			if r.done < r.of {
				r.drain = 0
				r.notes = append(r.notes, fmt.Sprintf("watched for %v", within))
			}
			r.law = perSecond + burst
		}})
	}
	return list
}
