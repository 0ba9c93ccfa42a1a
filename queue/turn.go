package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
)

// A turn is one delivery of one task, from Asynq's call to the answer.
type turn struct {
	ctx    context.Context
	task   *asynq.Task
	id     string
	queue  string
	n      int
	lane   *lane         // nil: not limited
	srv    *server       // nil: no Configure
	waited time.Duration // in its slot, before it started
	stay   bool          // cannot be handed back: its last attempt, or nobody told Asynq what a deferral is

	// What it was promised when it was handed back before. Guarded by Gate.mu until arrive returns.
	seq    uint64        // its place among the deferred; 0: none yet
	count  int           // deferrals so far
	called bool          // its time has come
	guest  bool          // another process called it
	asked  bool          // and it has asked for one of the places that are held for those who were called
	slot   chan struct{} // to give back once it has started
	spare  sluice.Reservation
}

var errDrained = errors.New("drained")

// arrive makes out who comes, and takes a task that comes back off the books.
func (g *Gate) arrive(ctx context.Context, task *asynq.Task, lim sluice.Limiter, n int) *turn {
	t := &turn{ctx: ctx, task: task, n: n}
	t.id, _ = asynq.GetTaskID(ctx)
	t.queue, _ = asynq.GetQueueName(ctx)
	retried, known := asynq.GetRetryCount(ctx)
	most, _ := asynq.GetMaxRetry(ctx)

	g.mu.Lock()
	defer g.mu.Unlock()
	t.srv, _ = ctx.Value(serverKey{g}).(*server)
	t.stay = t.srv == nil || known && retried >= most
	if lim != nil {
		t.lane = g.laneOfLocked(lim)
		t.lane.users++
	}
	if p := g.parked[taskKey{t.queue, t.id}]; p != nil && t.id != "" {
		g.takeLocked(p, t)
	}
	return t
}

// hurried says whether so little is left of the task's time that no more may be asked than must be.
func (t *turn) hurried() bool {
	end, ok := t.ctx.Deadline()
	return ok && time.Until(end) < 3*margin
}

func (g *Gate) leave(t *turn) {
	t.release()
	if t.lane != nil {
		g.mu.Lock()
		if t.called && !t.asked {
			t.lane.claims--
			t.spare = t.lane.spareLocked(t.n)
		}
		t.lane.users--
		g.forgetLocked(t.lane)
		g.mu.Unlock()
	}
	if t.spare != nil {
		t.spare.Cancel()
	}
}

// release gives back what was held for the task while it was on its way.
func (t *turn) release() {
	if t.slot != nil {
		<-t.slot
		t.slot = nil
	}
}

// admit returns nil when the task may start, and else the error for Asynq.
func (g *Gate) admit(t *turn) error {
	began := time.Now()
	if t.lane != nil && t.n > 0 {
		pace := g.pace
		if t.stay {
			g.warnUnconfigured(t)
			pace = g.insist
		}
		if err := pace(t); err != nil {
			return err
		}
		// Granted in the instant in which Asynq gave the task up: somebody else has it, or will.
		if err := t.ctx.Err(); err != nil {
			return err
		}
	}
	t.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Started++
	if t.lane != nil && t.n > 0 {
		t.waited = time.Since(began)
		g.stats.Waited += t.waited
	}
	return nil
}

// pace waits for the turn of a task that can be handed back, and hands it back where the turn is too far.
func (g *Gate) pace(t *turn) error {
	err := g.stand(t)
	if err != nil && g.calledElsewhere(t, err) {
		err = g.stand(t)
	}
	switch {
	case err == nil:
		return nil
	case t.ctx.Err() != nil:
		return t.ctx.Err()
	case hopeless(err):
		return fmt.Errorf("queue: task %s: %w", t.id, err)
	}
	return g.postpone(t, err)
}

// stand waits in place, as long as the task's stance allows.
func (g *Gate) stand(t *turn) error {
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	patience, ok := g.enter(t, cancel)
	if !ok {
		return errDrained
	}
	defer g.exit(t)
	ctx, cancelTimer := context.WithTimeout(ctx, patience)
	defer cancelTimer()

	err := g.take(ctx, t)
	if err != nil && t.ctx.Err() == nil && g.drained() {
		return errDrained
	}
	return err
}

// take uses a place that was held for the task, or asks for a new one like any other.
func (g *Gate) take(ctx context.Context, t *turn) error {
	if t.called && !t.asked {
		t.asked = true
		if p := g.placeFor(t); p != nil {
			return p.Wait(ctx)
		}
	}
	return t.lane.lim.Wait(ctx, t.n)
}

// insist waits for the turn of a task that cannot be handed back, as long as its ctx leaves time to start at all. The
// limiter does not get to see the deadline: it would refuse at once what is not due by then, and those ahead may leave.
func (g *Gate) insist(t *turn) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.ctx))
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	if end, ok := t.ctx.Deadline(); ok {
		defer time.AfterFunc(time.Until(end)-margin, cancel).Stop()
	}
	g.enter(t, nil)
	defer g.exit(t)
	for {
		err := g.take(ctx, t)
		switch {
		case err == nil:
			return nil
		case t.ctx.Err() != nil:
			return t.ctx.Err()
		case hopeless(err):
			return fmt.Errorf("queue: task %s: %w", t.id, err)
		case ctx.Err() != nil:
			return g.tooLate(t, "no turn came in time, and the task cannot be handed back")
		}
		// Full, closed or out of reach: ask again.
		sleep(ctx, min(max(wanted(err), 10*time.Millisecond), unknownWait))
	}
}

// tooLate is the failure of a task that could not start before its own deadline.
func (g *Gate) tooLate(t *turn, why string) error {
	end, _ := t.ctx.Deadline()
	rate := t.lane.lim.Stats()
	err := fmt.Errorf("queue: task %s: deadline in %v: %s: %w", t.id, time.Until(end).Round(time.Millisecond), why,
		&sluice.Refusal{Reason: sluice.ErrDeadline, N: t.n, RetryAfter: sluice.Never, Rate: rate.Rate, Burst: rate.Burst})
	g.sayLate(t)
	return err
}

// enter counts the task among those who wait in place and says how long it may. leave, if not nil, is how Drain makes
// it go; then false says that the Gate is being drained.
func (g *Gate) enter(t *turn, leave context.CancelFunc) (time.Duration, bool) {
	s := stance{left: sluice.Never, maxWait: g.cfg.MaxWait, mixed: g.cfg.Route != nil && g.caller != nil, called: t.called, guest: t.guest}
	if end, ok := t.ctx.Deadline(); ok {
		s.left = time.Until(end)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if leave != nil && g.draining {
		return 0, false
	}
	s.queued = t.lane.waits.ahead(t.seq)
	if t.srv != nil {
		s.crowded = t.srv.waiting >= t.srv.mayWait()
		s.full = t.srv.waiting >= t.srv.mayHost()
		t.srv.waiting++
	}
	t.lane.standing++
	g.stands[t] = leave
	return s.patience(), true
}

func (g *Gate) exit(t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.stands, t)
	t.lane.standing--
	t.lane.kick()
	if t.srv != nil {
		t.srv.waiting--
	}
}

func (g *Gate) drained() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.draining
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
