package queue

import (
	"context"
	"errors"
	"time"

	"github.com/fadf4e53/sluice"
)

// postpone hands a task back for want of a turn. It returns the deferral, or nil if the task got its turn after all, or an
// ordinary error where it can neither wait nor come back.
func (g *Gate) postpone(t *turn, refused error) error {
	if errors.Is(refused, errDrained) {
		return g.hand(t, &deferral{now: true}, 0)
	}
	latest, sure := g.latestReturn(t)
	if !latest.IsZero() && !latest.After(time.Now()) {
		err := g.lastChance(t)
		if err == nil || sure || !errors.Is(err, sluice.ErrDeadline) {
			return err
		}
		latest = time.Time{} // its time may begin anew with its return, and if not Asynq reports it
	}
	wait := wanted(refused)
	d := &deferral{cause: refused}
	d.at, wait = g.park(t, wait, latest)
	d.d = wait.Round(time.Millisecond)
	return g.hand(t, d, wait)
}

// handBack answers a handler that asked for it. nil: the handler is to be called again, here, for the task cannot be
// handed back and has waited in place instead.
func (g *Gate) handBack(t *turn, asked *deferral, err error) error {
	if asked.pause && t.lane != nil && asked.d > 0 {
		if err := t.lane.lim.Pause(t.ctx, asked.d); err != nil {
			g.log().Warn("queue: Backoff could not pause its limiter; the task itself stays away", "task", t.id, "err", err)
		}
	}
	at := time.Now().Add(asked.d)
	if t.stay {
		g.warnUnconfigured(t)
		if end, ok := t.ctx.Deadline(); ok && end.Before(at.Add(margin)) {
			return &noRoom{d: asked.d, cause: err}
		}
		sleep(t.ctx, asked.d)
		return t.ctx.Err()
	}
	if latest, sure := g.latestReturn(t); sure && !latest.IsZero() && latest.Before(secondUp(at)) {
		return &noRoom{d: asked.d, cause: err} // it would come back only to be failed by Asynq, without a word why
	}
	return g.hand(t, &deferral{d: asked.d, at: at, cause: err}, time.Until(at))
}

// hand counts a deferral, tells it and returns it.
func (g *Gate) hand(t *turn, d *deferral, in time.Duration) error {
	told := Deferral{TaskID: t.id, Type: t.task.Type(), Queue: t.queue, N: t.n, In: max(0, in)}
	g.mu.Lock()
	g.stats.Deferred++
	told.Count = g.countLocked(t, d.at)
	g.mu.Unlock()
	if !d.now {
		g.sayDeferred(told, d.Error())
		g.checkUnique(t, in)
	}
	g.tell(t.ctx, told)
	return d
}

func (g *Gate) tell(ctx context.Context, d Deferral) {
	if g.cfg.OnDefer == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			g.log().Error("queue: OnDefer panicked", "task", d.TaskID, "panic", p)
		}
	}()
	g.cfg.OnDefer(ctx, d)
}

// lastChance is for a task whose Deadline leaves no whole second in which to come back: it may wait for as long as it
// could still start, if the limiter sees a turn by then.
func (g *Gate) lastChance(t *turn) error {
	end, _ := t.ctx.Deadline()
	ctx, cancel := context.WithDeadline(t.ctx, end.Add(-margin))
	defer cancel()
	if _, ok := g.enter(t, cancel); !ok {
		return g.hand(t, &deferral{now: true}, 0)
	}
	defer g.exit(t)
	switch err := g.take(ctx, t); {
	case err == nil:
		return nil
	case t.ctx.Err() != nil:
		return t.ctx.Err()
	case g.drained():
		return g.hand(t, &deferral{now: true}, 0)
	}
	return g.tooLate(t, "no turn before it, and no second is left in which to come back")
}

// latestReturn is the last second at which a task must be back for its Deadline; zero: it has none. Asynq does not call
// the handler of a task that comes after its Deadline, it counts a failure.
//
// ctx has the nearer of Timeout and Deadline and does not tell which. A Timeout alone shows, for Asynq adds it to its
// clock, fraction and all; where both are set it keeps whole seconds, and only Redis can say whose they are.
func (g *Gate) latestReturn(t *turn) (latest time.Time, sure bool) {
	end, ok := t.ctx.Deadline()
	if !ok || end.Nanosecond() != 0 {
		return time.Time{}, true
	}
	if g.caller != nil && t.id != "" {
		if known, ok := g.caller.deadline(t.ctx, t.queue, t.id); ok {
			end, sure = known, true
		}
	}
	if end.IsZero() {
		return time.Time{}, true
	}
	return end.Add(-2 * tick), sure // a tick of the forwarder, and time to start
}

// park notes a task that is handed back and returns when it is to be in Asynq's books again, and how long until it is
// expected. Each deferral stands behind the one before it: a virtual queue, which gives every task its own second
// where a delay of its own would bring them all back for the same turn.
func (g *Gate) park(t *turn, wait time.Duration, latest time.Time) (time.Time, time.Duration) {
	stats := t.lane.lim.Stats()
	step := time.Duration(0)
	if stats.Rate.Valid() {
		step = stats.Rate.TimeFor(int64(t.n))
	}
	g.warnTicks(t, stats.Rate)
	now := time.Now()
	at := now.Add(wait)

	g.mu.Lock()
	defer g.mu.Unlock()
	if behind := t.lane.tail.Add(step); behind.After(at) {
		at = behind
	}
	t.lane.tail = at
	due := at
	if g.callableLocked(t) {
		at = at.Add(fallback)
	}
	if !latest.IsZero() && latest.Before(at) {
		at = latest
	}
	g.parkLocked(t, due, at, latest)
	if due.After(at) {
		due = at
	}
	return at, due.Sub(now)
}

// countLocked counts this deferral of t.
func (g *Gate) countLocked(t *turn, back time.Time) int {
	t.count++
	if t.id != "" {
		p := g.parked[taskKey{t.queue, t.id}]
		if p == nil {
			p = &parked{key: taskKey{t.queue, t.id}, lane: t.lane, n: t.n, index: -1}
			g.parked[p.key] = p
			g.sweepLocked()
		}
		p.count, p.until = t.count, back.Add(keepParked)
		if back.IsZero() {
			p.until = time.Now().Add(keepParked)
		}
	}
	return t.count
}

// A noRoom is the failure of a task on its last attempt whose handler wants it back later than its deadline allows. It is
// no deferral, though one has caused it: it must not unwrap to it.
type noRoom struct {
	d     time.Duration
	cause error
}

func (e *noRoom) Error() string {
	return "queue: the task cannot be handed back and its deadline is nearer than the " + e.d.String() +
		" that its handler asked for: " + e.cause.Error()
}

func (e *noRoom) Is(target error) bool {
	return target == sluice.ErrDeadline || target == context.DeadlineExceeded
}
