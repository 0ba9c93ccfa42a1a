package queuerun

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice/queue"
)

// The two kinds of jobs, which are Asynq task types.
const (
	limited = "limited"
	free    = "free"
)

var kinds = []string{limited, free}

func taskID(kind string, i int) string { return fmt.Sprintf("%s-%d", kind, i) }

// A ledger writes down what happens while it happens. Any number of goroutines may share one.
type ledger struct {
	opened time.Time // when the worker was let loose: the zero of all starts

	mu      sync.Mutex // guards everything below
	entries map[string]*entry
}

type entry struct {
	enqueued int // their IDs are taskID(kind, 0..enqueued-1)
	starts   []time.Duration
	started  map[string]int
	done     map[string]bool
	deferred int
	failed   int
}

func newLedger() *ledger {
	l := &ledger{entries: make(map[string]*entry)}
	for _, kind := range kinds {
		l.entries[kind] = &entry{started: make(map[string]int), done: make(map[string]bool)}
	}
	return l
}

// note changes the books of one kind.
func (l *ledger) note(kind string, change func(*entry)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.entries[kind]; e != nil {
		change(e)
	}
}

func (l *ledger) enqueued(kind string) { l.note(kind, func(e *entry) { e.enqueued++ }) }

// started takes the time from its caller: the lock must not make a start look later than it was.
func (l *ledger) started(kind, id string, at time.Time) {
	l.note(kind, func(e *entry) {
		e.starts = append(e.starts, at.Sub(l.opened))
		e.started[id]++
	})
}

func (l *ledger) done(kind, id string)      { l.note(kind, func(e *entry) { e.done[id] = true }) }
func (l *ledger) failed(kind string)        { l.note(kind, func(e *entry) { e.failed++ }) }
func (l *ledger) deferred(d queue.Deferral) { l.note(d.Type, func(e *entry) { e.deferred++ }) }

// progress returns how many jobs there are, how many are done, and how many starts there were.
func (l *ledger) progress() (all, done, starts int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		all += e.enqueued
		done += len(e.done)
		starts += len(e.starts)
	}
	return all, done, starts
}

// accounts closes the books against what was found in the queue: a job that is neither done nor there is lost.
func (l *ledger) accounts(found map[string]asynq.TaskState) []account {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []account
	for _, kind := range kinds {
		e := l.entries[kind]
		a := account{kind: kind, enqueued: e.enqueued, done: len(e.done), deferred: e.deferred, failed: e.failed}
		a.starts = slices.Sorted(slices.Values(e.starts))
		for i := range e.enqueued {
			id := taskID(kind, i)
			state, there := found[id]
			if e.started[id] > 1 {
				a.repeated++
			}
			switch {
			case there && e.done[id]:
				a.repeated++ // and again before long
			case there && state == asynq.TaskStateArchived:
				a.archived++
			case there:
				a.left++
			case !e.done[id]:
				a.lost++
			}
		}
		all = append(all, a)
	}
	return all
}
