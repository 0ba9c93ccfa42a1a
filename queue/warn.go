package queue

import (
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
)

const (
	// sayEvery is how often the same thing is said. A queue may hand back thousands of tasks a second.
	sayEvery = time.Minute

	// askEvery is how often one of them is looked at for its Unique lock, which takes two Redis commands.
	askEvery = time.Second
)

// A lull lets one line through in a while and counts those that it held back.
type lull struct {
	mu   sync.Mutex
	last time.Time
	held int
}

// pass says whether to speak now, and for how many.
func (l *lull) pass(now time.Time, every time.Duration) (n int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
	if !l.last.IsZero() && now.Sub(l.last) < every {
		return 0, false
	}
	n, l.last, l.held = l.held, now, 0
	return n, true
}

// voice is what a Gate has said, so that it does not repeat itself.
type voice struct {
	unconfigured, slow, unique, ticks sync.Once
	deferred, late                    lull
	asked                             lull // whether a task's Unique lock was looked at
}

func (g *Gate) warnUnconfigured(t *turn) {
	if t.srv == nil {
		g.voice.unconfigured.Do(func() {
			g.log().Warn("queue: this server's asynq.Config did not pass through Gate.Configure: Asynq would count a deferral as a failure, so tasks wait in place")
		})
	}
}

// warnTicks warns, once, where tasks come back by Asynq's clock and may not wait from one tick to the next.
func (g *Gate) warnTicks(t *turn, rate sluice.Rate) {
	if g.caller != nil || g.cfg.MaxWait <= 0 || g.cfg.MaxWait >= tick || !rate.Valid() || rate.TimeFor(int64(t.n)) >= tick {
		return
	}
	g.voice.ticks.Do(func() {
		g.log().Warn("queue: MaxWait is less than a second and there is no Config.Redis: tasks come back in whole seconds, and the limit stands idle between them",
			"max_wait", g.cfg.MaxWait, "rate", rate.String(), "type", t.task.Type(), "queue", t.queue)
	})
}

// sayDeferred tells of deferrals, once in a while.
func (g *Gate) sayDeferred(d Deferral, why string) {
	if n, ok := g.voice.deferred.pass(time.Now(), sayEvery); ok {
		g.log().Info("queue: tasks are handed back to wait for their turn", "tasks", n, "last", d.TaskID, "type", d.Type,
			"queue", d.Queue, "in", d.In.Round(time.Millisecond), "count", d.Count, "why", why)
	}
}

func (g *Gate) sayLate(t *turn) {
	if n, ok := g.voice.late.pass(time.Now(), sayEvery); ok {
		g.log().Warn("queue: tasks could not start before their deadline and fail", "tasks", n, "last", t.id,
			"type", t.task.Type(), "queue", t.queue)
	}
}

// A streak is a row of limited tasks that started without a wait while all slots of their server were taken: it is not a limit
// then that holds the work up. It is the server's, for a limit that nobody waits for is forgotten between two tasks.
type streak struct {
	n    int
	took time.Duration // by their handlers
}

// longStreak is how many of them make it worth a warning, besides three for each slot.
const longStreak = 20

// watch notes that a task's handler was called, and returns what to call when it is done.
func (g *Gate) watch(t *turn, waited time.Duration) (done func()) {
	s := t.srv
	if s == nil {
		return func() {}
	}
	g.mu.Lock()
	s.running++
	busy := waited < time.Millisecond && s.running+s.waiting >= s.slots
	g.mu.Unlock()
	began := time.Now()
	return func() {
		took := time.Since(began)
		g.mu.Lock()
		s.running--
		g.mu.Unlock()
		if t.lane != nil && t.n > 0 {
			g.judge(t, busy, took)
		}
	}
}

// judge warns, once, where the handlers are too slow for the limit to be reached.
func (g *Gate) judge(t *turn, busy bool, took time.Duration) {
	g.mu.Lock()
	k := &t.srv.streak
	if !busy {
		*k = streak{}
		g.mu.Unlock()
		return
	}
	k.n++
	k.took += took
	n, mean, slots := k.n, k.took/time.Duration(k.n), t.srv.slots
	g.mu.Unlock()
	if n < longStreak || n < 3*slots {
		return
	}
	rate := t.lane.lim.Stats().Rate
	if !rate.Valid() || rate.IsUnlimited() || mean <= rate.TimeFor(int64(t.n)*int64(slots)) {
		return
	}
	g.voice.slow.Do(func() {
		g.log().Warn("queue: the handlers are too slow for the limit to be reached: Concurrency / handler time is below the rate",
			"type", t.task.Type(), "concurrency", slots, "handler", mean.Round(time.Millisecond), "rate", rate.String(),
			"needed", int(rate.UnitsIn(mean))/max(1, t.n)+1)
	})
}

// checkUnique warns, once, where the Unique lock of a task ends before the task is expected back: a twin is let in then.
func (g *Gate) checkUnique(t *turn, in time.Duration) {
	if g.caller == nil || t.id == "" || t.hurried() {
		return
	}
	if _, ok := g.voice.asked.pass(time.Now(), askEvery); !ok {
		return
	}
	left, locked := g.caller.lockLeft(t.ctx, taskKey{t.queue, t.id})
	if !locked || left >= in {
		return
	}
	g.voice.unique.Do(func() {
		g.log().Warn("queue: a task's Unique lock ends before the task is expected back: a twin will be let in; give asynq.Unique a longer TTL",
			"task", t.id, "type", t.task.Type(), "queue", t.queue, "lock", left.Round(time.Millisecond), "in", in.Round(time.Millisecond))
	})
}
