package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// An event is one thing that happened to a task, in this process or in a worker's.
type event struct {
	What    string // "start", "done", "defer", "fail"
	ID      string
	Kind    string
	At      time.Time
	Born    time.Time // when it was enqueued
	Retried int
}

// A ledger is what the scenario sees of its tasks, without asking Redis, whose commands are being counted.
type ledger struct {
	mu     sync.Mutex
	events []event
	count  map[string]int // by what, and by what and kind
	wake   chan struct{}
	stall  time.Duration // the longest that this machine has kept a goroutine from running
	sink   func(event)   // of a worker process, which tells another and keeps nothing; else nil
}

func newLedger() *ledger {
	return &ledger{count: map[string]int{}, wake: make(chan struct{}, 1)}
}

func (l *ledger) add(e event) {
	if l.sink != nil {
		l.sink(e)
		return
	}
	l.mu.Lock()
	l.events = append(l.events, e)
	l.count[e.What]++
	l.count[e.What+" "+e.Kind]++
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// watchStalls measures how late goroutines run here: a start that is noted late counts in a second into which its turn does
// not fall. It returns what ends it.
func (l *ledger) watchStalls() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				begun := time.Now()
				time.Sleep(time.Millisecond)
				l.mu.Lock()
				l.stall = max(l.stall, time.Since(begun)-time.Millisecond)
				l.mu.Unlock()
			}
		}()
	}
	return cancel
}

// n counts events, of every kind if kind is "".
func (l *ledger) n(what, kind string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kind != "" {
		what += " " + kind
	}
	return l.count[what]
}

// until waits until there are so many and says whether it lived to see them.
func (l *ledger) until(what, kind string, n int, within time.Duration) bool {
	return l.when(within, func() bool { return l.n(what, kind) >= n })
}

func (l *ledger) when(within time.Duration, ok func() bool) bool {
	end := time.After(within)
	for !ok() {
		select {
		case <-l.wake:
		case <-end:
			return ok()
		}
	}
	return true
}

// all returns the events of a kind in their order.
func (l *ledger) all(what, kind string) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []event
	for _, e := range l.events {
		if e.What == what && (kind == "" || e.Kind == kind) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b event) int { return a.At.Compare(b.At) })
	return list
}

// last returns when the last start of a kind was.
func (l *ledger) last(kind string) time.Time {
	if all := l.all("start", kind); len(all) > 0 {
		return all[len(all)-1].At
	}
	return time.Time{}
}

// peak returns the most starts of a kind in any window.
func (l *ledger) peak(kind string, window time.Duration) int {
	all, most, first := l.all("start", kind), 0, 0
	for i, e := range all {
		for e.At.Sub(all[first].At) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// gap returns the longest time without a start of a kind, between its first and its n-th.
func (l *ledger) gap(kind string, from, to time.Time) (longest time.Duration) {
	last := from
	for _, e := range l.all("start", kind) {
		if e.At.After(from) && e.At.Before(to) {
			longest, last = max(longest, e.At.Sub(last)), e.At
		}
	}
	return max(longest, to.Sub(last))
}

// twice counts the starts of tasks after one that was done.
func (l *ledger) twice() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, done := 0, map[string]bool{}
	for _, e := range l.events {
		switch e.What {
		case "done":
			done[e.ID] = true
		case "start":
			if done[e.ID] {
				n++
			}
		}
	}
	return n
}

// distinct counts the tasks to which something has happened.
func (l *ledger) distinct(what string) int {
	ids := map[string]bool{}
	for _, e := range l.all(what, "") {
		ids[e.ID] = true
	}
	return len(ids)
}

// retried counts the tasks that were seen with a retry used.
func (l *ledger) retried() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := map[string]bool{}
	for _, e := range l.events {
		if e.Retried > 0 {
			ids[e.ID] = true
		}
	}
	return len(ids)
}

// mostDeferred returns how often the task that was deferred most often was.
func (l *ledger) mostDeferred() (most int) {
	times := map[string]int{}
	for _, e := range l.all("defer", "") {
		times[e.ID]++
		most = max(most, times[e.ID])
	}
	return most
}

// latency returns median and maximum from birth, or from since where that was later, to the start.
func latency(events []event, since time.Time) (median, worst time.Duration) {
	var all []time.Duration
	for _, e := range events {
		from := e.Born
		if from.Before(since) {
			from = since
		}
		all = append(all, e.At.Sub(from))
	}
	if len(all) == 0 {
		return 0, 0
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}
