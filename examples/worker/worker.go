package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/queue"
)

// work runs the worker until ctx ends, and then stops it without losing anything.
func work(ctx context.Context, c config, log *slog.Logger) error {
	observe := metrics.New()
	limits, err := newLimits(c, observe)
	if err != nil {
		return err
	}
	defer limits.close()

	gate, err := queue.NewGate(queue.Config{Route: limits.route, Redis: c.redis, Logger: log})
	if err != nil {
		return err
	}
	defer gate.Drain() // has connections of its own, also if nothing ever runs
	observe.Gate("worker", func() metrics.GateStats { return metrics.GateStats(gate.Stats()) })

	mux := asynq.NewServeMux()
	mux.Use(gate.Middleware)
	mux.Handle(taskType, newDelivery(c, log))

	web, err := listen(c.http, limits.global, observe)
	if err != nil {
		return err
	}
	defer web.close()

	srv := asynq.NewServer(c.redis, gate.Configure(asynq.Config{
		Concurrency: c.concurrency,
		// A post that has begun is always waited for. What outlasts this goes back into the queue, unharmed.
		ShutdownTimeout: c.timeout + time.Second,
		// Not told of deferrals: what comes here has failed.
		ErrorHandler: asynq.ErrorHandlerFunc(func(ctx context.Context, task *asynq.Task, err error) {
			id, _ := asynq.GetTaskID(ctx)
			retried, _ := asynq.GetRetryCount(ctx)
			log.Error("job failed", "id", id, "tenant", task.Headers()[tenantHeader], "retried", retried, "err", err)
		}),
		Logger: asynqLog{log},
		// No BaseContext of ctx: at SIGTERM it would end every job under way, and asynq would count failures.
	}))
	if err := srv.Start(mux); err != nil {
		return err
	}
	log.Info("working", "http", web.addr, "rate", c.rate.String(), "tenants", c.tenants.String(), "others", c.tenantRate.String())

	select {
	case <-ctx.Done():
	case err = <-web.failed: // without /healthz nobody would know of us
	}
	log.Info("stopping")
	web.draining.Store(true)
	srv.Stop()     // takes no more jobs
	gate.Drain()   // hands back those that wait for their turn
	srv.Shutdown() // waits for those under way
	log.Info("stopped", "started", gate.Stats().Started)
	return err
}
