package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/time/rate"
)

// What Asynq's wiki recommends: ask x/time's limiter, and if it says no, return an error that IsFailure does not count
// and that comes back after a random number of seconds.

type rejected struct{ in time.Duration }

func (e *rejected) Error() string { return fmt.Sprintf("rate limited: again in %v", e.in) }

func isRejected(err error) bool {
	var r *rejected
	return errors.As(err, &r)
}

func (w *world) recipe(limits map[string]*rate.Limiter, cfg asynq.Config, handler asynq.HandlerFunc) {
	cfg = w.failures(cfg)
	told := cfg.ErrorHandler
	cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		if !isRejected(err) {
			told.HandleError(ctx, t, err)
		}
	})
	cfg.IsFailure = func(err error) bool { return !isRejected(err) }
	cfg.RetryDelayFunc = func(n int, err error, t *asynq.Task) time.Duration {
		var r *rejected
		if errors.As(err, &r) {
			return r.in
		}
		return asynq.DefaultRetryDelayFunc(n, err, t)
	}
	srv := w.serve(cfg, func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			if l := limits[t.Type()]; l != nil && !l.Allow() {
				e := born(ctx, t)
				e.What, e.At = "defer", time.Now()
				w.add(e)
				return &rejected{time.Duration(rand.IntN(10)) * time.Second}
			}
			return next.ProcessTask(ctx, t)
		})
	}, handler)
	w.ends = append(w.ends, srv.Shutdown)
}
