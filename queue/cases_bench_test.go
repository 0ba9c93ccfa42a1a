package queue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice/queue"
)

// A bench is what a Gate sees of an Asynq server, in virtual time: so many slots, tasks in the order in which they came, and
// what is handed back or has failed comes again when Asynq's books say so, in whole seconds. The tasks have no IDs, which
// only Asynq can give.
type bench struct {
	t       *testing.T
	gate    *queue.Gate
	inner   *queue.Gate // nil: none
	slots   int
	backoff time.Duration     // after a failure
	timeout time.Duration     // of each delivery; 0: none
	handle  asynq.HandlerFunc // nil: nothing to do

	begun time.Time
	after []time.Duration // when each start was, since begun

	mu         sync.Mutex
	starts     []start
	deliveries int
	failures   int
}

// tasksOf returns n tasks of one type.
func tasksOf(kind string, n int) (all []*asynq.Task) {
	for i := range n {
		all = append(all, asynq.NewTask(kind, fmt.Append(nil, i)))
	}
	return all
}

// run returns when all tasks have succeeded.
func (b *bench) run(tasks ...*asynq.Task) {
	ctx, cfg := served(b.t.Context(), b.gate, asynq.Config{
		Concurrency:    b.slots,
		RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return b.backoff },
	})
	pending := make(chan *asynq.Task, len(tasks))
	var left, workers sync.WaitGroup
	left.Add(len(tasks))
	for _, task := range tasks {
		pending <- task
	}
	b.begun = time.Now()
	h := asynq.Handler(asynq.HandlerFunc(b.start))
	if b.inner != nil {
		ctx, cfg = served(ctx, b.inner, cfg)
		h = b.inner.Middleware(h)
	}
	h = b.gate.Middleware(h)
	for range b.slots {
		workers.Go(func() {
			for task := range pending {
				err := b.deliver(ctx, h, task)
				if err == nil {
					left.Done()
					continue
				}
				if cfg.IsFailure(err) {
					b.mu.Lock()
					b.failures++
					b.mu.Unlock()
				}
				back := time.Now().Add(cfg.RetryDelayFunc(0, err, task)).Truncate(time.Second)
				time.AfterFunc(time.Until(back), func() { pending <- task })
			}
		})
	}
	left.Wait()
	close(pending)
	workers.Wait()
}

func (b *bench) deliver(ctx context.Context, h asynq.Handler, task *asynq.Task) error {
	b.mu.Lock()
	b.deliveries++
	b.mu.Unlock()
	if b.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.timeout)
		defer cancel()
	}
	return h.ProcessTask(ctx, task)
}

func (b *bench) start(ctx context.Context, task *asynq.Task) error {
	b.mu.Lock()
	b.starts = append(b.starts, start{string(task.Payload()), task.Type(), time.Now()})
	b.after = append(b.after, time.Since(b.begun))
	b.mu.Unlock()
	if b.handle == nil {
		return nil
	}
	return b.handle(ctx, task)
}

// last is when the last task started.
func (b *bench) last() time.Duration { return b.after[len(b.after)-1] }

// by is how many tasks have started until then.
func (b *bench) by(at time.Duration) (n int) {
	for _, after := range b.after {
		if after <= at {
			n++
		}
	}
	return n
}

// law fails the test if more tasks of a kind have started in any window than a limit allows; "" is every kind.
func (b *bench) law(kind string, perWindow, burst int, window time.Duration) {
	b.t.Helper()
	w := worker{starts: b.starts}
	require.LessOrEqual(b.t, w.peak(kind, window), burst+perWindow, "%q in %v", kind, window)
}
