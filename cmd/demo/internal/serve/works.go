package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/store"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

const (
	task    = "job"
	work    = 5 * time.Millisecond // a job sleeps
	retries = 1                    // deferrals use none: a second failure would archive the job
)

// works is what runs behind the page: a queue, a worker behind a Gate, and somebody who brings jobs.
type works struct {
	store   *store.Store
	client  *asynq.Client
	limiter *waiter.Limiter
	gate    *queue.Gate
	server  *asynq.Server
	books   books
	ctx     context.Context // of the whole run
	turned  chan struct{}   // tells the bringer that the arrivals have changed
	done    sync.WaitGroup

	mu    sync.Mutex // guards everything below
	knobs knobs
	busy  time.Time // until when the service behind answers 429
}

// open starts it all.
func open(ctx context.Context, s settings, log *slog.Logger) (_ *works, err error) {
	w := &works{ctx: ctx, turned: make(chan struct{}, 1), knobs: s.knobs}
	if w.limiter, err = waiter.New(waiter.Config{Rate: sluice.PerSecond(int64(s.Rate)), Burst: s.Burst}); err != nil {
		return nil, err
	}
	if w.store, err = store.Open(ctx, ""); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.store.Close())
		}
	}()
	w.gate, err = queue.NewGate(queue.Config{
		Route:   func(context.Context, *asynq.Task) sluice.Limiter { return w.limiter }, // so that it defers
		Redis:   w.store.Opt,
		Logger:  slog.New(slog.DiscardHandler), // deferrals are on the page
		OnDefer: func(context.Context, queue.Deferral) { w.books.deferred.note(time.Now(), 1) },
	})
	if err != nil {
		return nil, err
	}
	w.server = asynq.NewServer(w.store.Opt, w.gate.Configure(asynq.Config{
		Concurrency: s.concurrency,
		Queues:      map[string]int{w.store.Queue: 1},
		Logger:      &store.Log{To: log},
		LogLevel:    asynq.WarnLevel,
	}))
	if err := w.server.Start(w.gate.Middleware(asynq.HandlerFunc(w.handle))); err != nil {
		return nil, fmt.Errorf("the worker does not start: %w", err)
	}
	w.client = asynq.NewClient(w.store.Opt)
	w.done.Go(w.bring)
	return w, nil
}

// close ends it all. What is in the queue goes with it.
func (w *works) close() error {
	w.done.Wait()
	w.server.Stop()
	w.gate.Drain()
	w.server.Shutdown()
	return errors.Join(w.client.Close(), w.limiter.Close(), w.store.Close())
}

// handle is a job: it calls the service behind, which is quick, or busy.
func (w *works) handle(ctx context.Context, _ *asynq.Task) error {
	w.books.starts.note(time.Now(), 1)
	w.mu.Lock()
	busy := time.Until(w.busy)
	w.mu.Unlock()
	if busy > 0 {
		w.books.told.note(time.Now(), 1)
		return queue.Backoff(busy) // nothing starts under this limit for so long; the job comes again
	}
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.books.done.note(time.Now(), 1)
	return nil
}

// bring lets jobs arrive, evenly, as many a second as the knob says.
func (w *works) bring() {
	due := time.Now()
	for {
		w.mu.Lock()
		n := w.knobs.Arrivals
		w.mu.Unlock()
		wait := time.Hour // until somebody turns the knob
		if n > 0 {
			due = due.Add(time.Second / time.Duration(n))
			wait = time.Until(due)
		}
		select {
		case <-w.ctx.Done():
			return
		case <-w.turned:
			due = time.Now()
			continue
		case <-time.After(max(0, wait)):
		}
		if n > 0 {
			w.drop(1)
		}
	}
}

// drop enqueues n jobs, as far as the line has room.
func (w *works) drop(n int) {
	for range w.room(n) {
		if w.ctx.Err() != nil {
			return
		}
		if _, err := w.client.EnqueueContext(w.ctx, asynq.NewTask(task, nil), asynq.Queue(w.store.Queue), asynq.MaxRetry(retries)); err != nil {
			w.books.give(1) // the run is at its end
		}
	}
}

// room takes places in line for n jobs, as many as there are, and counts the rest as turned away.
func (w *works) room(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	room := min(n, max(0, w.knobs.Capacity-w.books.line()))
	w.books.arrived.note(now, n)
	w.books.refused.note(now, n-room)
	return room
}

// turn sets the knobs of what is running.
func (w *works) turn(k knobs) error {
	if err := k.check(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.knobs
	if k.Rate != was.Rate {
		if err := w.limiter.SetRate(sluice.PerSecond(int64(k.Rate))); err != nil {
			return err
		}
	}
	if k.Burst != was.Burst {
		if err := w.limiter.SetBurst(k.Burst); err != nil {
			return err
		}
	}
	w.knobs = k
	if k.Arrivals != was.Arrivals {
		select {
		case w.turned <- struct{}{}:
		default: // it will look anyway
		}
	}
	return nil
}

// answer429 makes the service behind busy for d.
func (w *works) answer429(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = time.Now().Add(d)
}
