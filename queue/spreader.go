package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/isnil"
)

// A Spreader paces at the producer: each task gets the next free place of a limiter and is scheduled for it. That is a
// plan, which spares the worker the deferrals; it does not limit starts, for Asynq keeps whole seconds, and what one
// second holds starts together. The Gate's limiter still decides. Give the Spreader a limiter of its own, or it would take
// the Gate's places for tasks that will ask for them again.
//
// The zero Spreader and a nil one refuse every task. Any number of goroutines may share one.
type Spreader struct {
	client *asynq.Client
	lim    sluice.Limiter
}

// NewSpreader returns a Spreader that enqueues with client at the pace of plan. A nil client or plan is told by Enqueue.
func NewSpreader(client *asynq.Client, plan sluice.Limiter) *Spreader {
	return &Spreader{client: client, lim: plan}
}

// Enqueue takes the next place and enqueues task for it with asynq.ProcessAt, rounded up to the whole second: never
// before its place. A place that is free now is used now. A ProcessAt or ProcessIn among opts is kept if it is later than
// the place; one that was given to asynq.NewTask cannot be seen, and the place replaces it.
//
// An Enqueue that Asynq refuses gives its place back, and one that the plan refuses (full, closed, beyond its
// MaxWait) enqueues nothing. Of a nil Spreader, client, plan, ctx or task the error is sluice.ErrInvalid.
func (s *Spreader) Enqueue(ctx context.Context, task *asynq.Task, opts ...asynq.Option) (*asynq.TaskInfo, error) {
	if err := s.check(ctx, task); err != nil {
		return nil, err
	}
	place, err := s.lim.Reserve(ctx, 1)
	if err != nil {
		return nil, fmt.Errorf("queue: Spreader: no place for a %q task: %w", task.Type(), err)
	}
	delay := place.Delay()
	if delay == sluice.Never {
		place.Cancel()
		return nil, fmt.Errorf("queue: Spreader: no place for a %q task: %w", task.Type(), sluice.ErrClosed)
	}
	if delay > 0 {
		now := time.Now()
		at := now.Add(delay)
		if own := asked(opts, now); own.After(at) {
			at = own
		}
		opts = append(opts[:len(opts):len(opts)], asynq.ProcessAt(secondUp(at)))
	}
	info, err := s.client.EnqueueContext(ctx, task, opts...)
	if err != nil {
		place.Cancel()
		return nil, fmt.Errorf("queue: Spreader: %w", err)
	}
	return info, nil
}

func (s *Spreader) check(ctx context.Context, task *asynq.Task) error {
	field := ""
	switch {
	case s == nil:
		field = "Spreader"
	case s.client == nil:
		field = "Spreader client"
	case isnil.Value(s.lim):
		field = "Spreader limiter"
	case ctx == nil:
		field = "Spreader.Enqueue ctx"
	case task == nil:
		field = "Spreader.Enqueue task"
	default:
		return nil
	}
	return fmt.Errorf("queue: %s <nil>: must not be nil: %w", field, sluice.ErrInvalid)
}

// asked is when the caller's own options want the task; of several the last counts, as in asynq.
func asked(opts []asynq.Option, now time.Time) (at time.Time) {
	for _, o := range opts {
		if o == nil {
			continue
		}
		switch v := o.Value().(type) {
		case time.Time:
			if o.Type() == asynq.ProcessAtOpt {
				at = v
			}
		case time.Duration:
			if o.Type() == asynq.ProcessInOpt {
				at = now.Add(v)
			}
		}
	}
	return at
}
