package queue

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/isnil"
)

// A Gate holds an Asynq worker's tasks to a limit. It is a middleware: a task whose turn has come goes on to its handler,
// one whose turn is near waits in its worker slot, and one whose turn is far is handed back to Asynq and returns for
// it. Handed back, a task has used no retry, counts as no failure and is told to no ErrorHandler. The package comment
// says what is promised and how far.
//
// The zero Gate and a nil one let nothing through: every task fails with sluice.ErrInvalid. Call NewGate.
//
// A Gate serves any number of servers, muxes and goroutines in one process: all that it knows is in the Gate, nothing in
// what Middleware returns.
//
// If a task's ctx ends while it waits, its place goes back and all behind it move up. A turn that came before stands,
// but a task that Asynq has given up is not started.
type Gate struct {
	cfg    Config
	caller *caller // brings deferred tasks back; nil without Config.Redis
	voice  voice

	mu       sync.Mutex                   // guards everything below
	lanes    map[sluice.Limiter]*lane     // one for each limiter that is in use
	parked   map[taskKey]*parked          // what was handed back and has not started since
	sweepAt  int                          // how many parked tasks there may be before stale ones are looked for
	lanesAt  int                          // the same for lanes
	stands   map[*turn]context.CancelFunc // who waits in place, and how to make him leave
	draining bool                         // until the next Configure
	run      context.Context              // ends with Drain: no more calls
	halt     context.CancelFunc           // ends run
	seq      uint64                       // of the last deferral: first come, first served
	stats    Stats                        // but for Waiting, which is how many stand
}

// Stats is a snapshot of a Gate. Started, Deferred and Waited only grow.
type Stats struct {
	// Started counts the calls of a handler, of unlimited tasks too.
	Started uint64
	// Deferred counts the tasks handed back: for want of a turn, by Defer and Backoff, and by Drain.
	Deferred uint64
	// Waiting is how many tasks wait in a worker slot now.
	Waiting int
	// Waited is the time that started tasks have spent waiting in a worker slot, summed.
	Waited time.Duration
}

// Stats returns a snapshot. Of a nil Gate it is zero.
func (g *Gate) Stats() Stats {
	if g == nil {
		return Stats{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.stats
	s.Waiting = len(g.stands)
	return s
}

// Middleware puts the Gate in front of next: mux.Use(gate.Middleware). It should be the last one in Use, so that other
// middlewares' side effects wait for the turn too, or happen for a deferral as they do for an error.
func (g *Gate) Middleware(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		switch {
		case g == nil || g.lanes == nil:
			return fmt.Errorf("queue: Gate: must come from NewGate: %w", sluice.ErrInvalid)
		case next == nil:
			return fmt.Errorf("queue: Middleware: handler <nil>: must not be nil: %w", sluice.ErrInvalid)
		case ctx == nil:
			return fmt.Errorf("queue: ctx <nil>: must not be nil: %w", sluice.ErrInvalid)
		}
		return g.process(ctx, task, next)
	})
}

func (g *Gate) process(ctx context.Context, task *asynq.Task, next asynq.Handler) error {
	lim, n, err := g.limitOf(ctx, task)
	if err != nil {
		return err
	}
	t := g.arrive(ctx, task, lim, n)
	defer g.leave(t)
	for {
		if err := g.admit(t); err != nil {
			return err
		}
		err := g.handle(t, next)
		asked, back := handsBack(err)
		if !back {
			return err
		}
		if err := g.handBack(t, asked, err); err != nil {
			return err
		}
	}
}

// limitOf asks the user's functions. A panic of theirs is the task's, as it would be in its handler.
func (g *Gate) limitOf(ctx context.Context, task *asynq.Task) (sluice.Limiter, int, error) {
	lim, n := g.cfg.Limiter, 1
	if g.cfg.Route != nil {
		lim = g.cfg.Route(ctx, task)
	}
	if isnil.Value(lim) {
		return nil, 0, nil
	}
	if g.cfg.Cost != nil {
		n = g.cfg.Cost(ctx, task)
	}
	if n < 0 {
		return nil, 0, fmt.Errorf("queue: Config.Cost %d of a %q task: must not be negative: %w", n, task.Type(), sluice.ErrInvalid)
	}
	return lim, n, nil
}

// A lane is what the Gate knows of one limiter.
type lane struct {
	lim     sluice.Limiter
	shared  bool      // found again by the limiter's identity; else nothing may wait for the lane
	users   int       // turns in hand
	tail    time.Time // the place of the last deferred task in the virtual queue
	waits   backlog   // deferred tasks, in the order in which they are to be called
	out     int       // tasks that were called and have not come yet
	more    int       // those of them that were called to the tail
	places  []place   // held for them, in the order of their turns
	claims  int       // tasks that may still ask for one of the places
	calling bool      // a goroutine calls them

	standing int           // tasks that wait in place
	abroad   time.Time     // until when its tasks are taken to be delivered to other processes too
	kept     time.Time     // when keep last looked
	news     chan struct{} // somebody has come or gone
}

// laneOfLocked finds a limiter's lane by ==. A limiter that cannot be compared (a struct with a slice in it, say) gets one
// for this call only: it is obeyed all the same, but its tasks do not know of each other.
func (g *Gate) laneOfLocked(lim sluice.Limiter) *lane {
	if !reflect.ValueOf(lim).Comparable() {
		return &lane{lim: lim, news: make(chan struct{}, 1)}
	}
	l := g.lanes[lim]
	if l == nil {
		if len(g.lanes) >= max(g.lanesAt, 1024) { // those whose last deferral was not due when they were left
			for _, old := range g.lanes {
				g.forgetLocked(old)
			}
			g.lanesAt = 2 * len(g.lanes)
		}
		l = &lane{lim: lim, shared: true, news: make(chan struct{}, 1)}
		g.lanes[lim] = l
	}
	return l
}

// forgetLocked drops what is known of a limiter that nobody uses: there may be one for each of a million keys. A task that
// was handed back for its handler's sake does not keep its lane, and its limiter may have got another one since.
func (g *Gate) forgetLocked(l *lane) {
	if l.shared && g.lanes[l.lim] == l && l.users == 0 && l.out == 0 && l.claims == 0 && !l.calling && len(l.waits) == 0 && time.Now().After(l.tail) {
		delete(g.lanes, l.lim)
	}
}

// handle calls the handler and watches how long it takes.
func (g *Gate) handle(t *turn, next asynq.Handler) error {
	defer g.watch(t, t.waited)()
	return next.ProcessTask(t.ctx, t.task)
}
