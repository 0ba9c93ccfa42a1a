package queuerun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/law"
	"github.com/fadf4e53/sluice/cmd/demo/internal/store"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

const (
	// work is what a job does: it sleeps. Short, so that what takes time is the waiting.
	work = 5 * time.Millisecond

	// retries is how often a job may fail. One suffices to tell a deferral that counts as a failure: the second one
	// would show up among the archived.
	retries = 1
)

// demonstrate runs the whole thing. The error is for what kept it from being shown; what was shown and is wrong is in
// the report.
func demonstrate(ctx context.Context, s settings, stdout, stderr io.Writer) (_ *report, err error) {
	limiter, err := waiter.New(waiter.Config{Rate: s.rate, Burst: s.burst})
	if err != nil {
		return nil, err
	}
	defer limiter.Close()
	st, err := store.Open(ctx, s.redis)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	writeIntro(stdout, s)

	sc := newScreen(stderr, s.jobs+s.free)
	defer sc.close()
	d := &demo{store: st, books: newLedger(), screen: sc, lim: law.Limit{Rate: s.rate, Burst: s.burst}}
	if err := d.enqueue(ctx, s); err != nil {
		return nil, err
	}
	if err := d.serve(ctx, s, limiter); err != nil {
		return nil, err
	}
	return d.report(ctx, s)
}

// A demo is one run.
type demo struct {
	store  *store.Store
	books  *ledger
	screen *screen
	lim    law.Limit
	cut    error       // why the run was given up
	stalls []law.Stall // when the machine held starts up
}

// enqueue drops all jobs in, the limited ones in front: the free ones then stand where a limit would hold them up.
func (d *demo) enqueue(ctx context.Context, s settings) error {
	client := asynq.NewClient(d.store.Opt)
	defer client.Close()
	// An Enqueue that is cancelled half-way may have happened, and would look like a lost job or one too many.
	whole := context.WithoutCancel(ctx)
	for _, k := range []struct {
		kind string
		n    int
	}{{limited, s.jobs}, {free, s.free}} {
		for i := range k.n {
			if ctx.Err() != nil {
				return nil
			}
			_, err := client.EnqueueContext(whole, asynq.NewTask(k.kind, nil),
				asynq.Queue(d.store.Queue), asynq.TaskID(taskID(k.kind, i)), asynq.MaxRetry(retries))
			if err != nil {
				return fmt.Errorf("job %s could not be enqueued: %w", taskID(k.kind, i), err)
			}
			d.books.enqueued(k.kind)
		}
	}
	return nil
}

// serve lets one worker loose until all is done or ctx ends, and shuts it down.
func (d *demo) serve(ctx context.Context, s settings, limiter sluice.Limiter) error {
	if ctx.Err() != nil {
		return nil
	}
	log := d.screen.logger()
	gate, err := queue.NewGate(queue.Config{
		Route: func(_ context.Context, t *asynq.Task) sluice.Limiter {
			if t.Type() == limited {
				return limiter
			}
			return nil
		},
		Redis:   d.store.Opt,
		Logger:  log,
		OnDefer: func(_ context.Context, deferral queue.Deferral) { d.books.deferred(deferral) },
	})
	if err != nil {
		return err
	}
	srv := asynq.NewServer(d.store.Opt, gate.Configure(asynq.Config{
		Concurrency: s.concurrency,
		Queues:      map[string]int{d.store.Queue: 1},
		Logger:      &store.Log{To: log},
		LogLevel:    asynq.WarnLevel,
		ErrorHandler: asynq.ErrorHandlerFunc(func(_ context.Context, t *asynq.Task, err error) {
			d.books.failed(t.Type())
			log.Error("a job failed", "type", t.Type(), "err", err)
		}),
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Second },
	}))
	d.books.opened = time.Now()
	p := law.NewPulse(d.books.opened)
	defer func() { d.stalls = p.Close() }()
	if err := srv.Start(gate.Middleware(asynq.HandlerFunc(d.handle))); err != nil {
		return fmt.Errorf("the worker does not start: %w", err)
	}
	d.cut = d.watch(ctx)
	// In this order: take nothing new, hand back what waits for its turn, let what runs come to its end.
	srv.Stop()
	gate.Drain()
	srv.Shutdown()
	return nil
}

// handle is the job.
func (d *demo) handle(ctx context.Context, t *asynq.Task) error {
	at := time.Now()
	id, _ := asynq.GetTaskID(ctx)
	d.books.started(t.Type(), id, at)
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return ctx.Err()
	}
	d.books.done(t.Type(), id)
	return nil
}

// report closes the books.
func (d *demo) report(ctx context.Context, s settings) (*report, error) {
	enqueued, done, _ := d.books.progress()
	r := &report{
		limit: d.lim, stalls: d.stalls, cut: d.cut,
		interrupted: ctx.Err() != nil && done < s.jobs+s.free,
		unasked:     s.jobs + s.free - enqueued,
		left:        make(map[asynq.TaskState]int),
	}
	var found map[string]asynq.TaskState
	if enqueued > 0 { // before the first job there is no queue
		var err error
		if found, r.counted, err = d.store.Census(); err != nil {
			return nil, errors.Join(d.cut, err)
		}
	}
	for _, state := range found {
		r.left[state]++
	}
	r.accounts = slices.DeleteFunc(d.books.accounts(found), func(a account) bool { return a.kind == free && s.free == 0 })
	return r, nil
}
