package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// produce puts jobs into the queue, for each tenant in turn, and schedules them as the limits will let them go. Without that
// plan they would all be due at once: the workers would keep the limits as well, with more handing back.
func produce(ctx context.Context, c config, stdout io.Writer) (err error) {
	client := asynq.NewClient(c.redis)
	defer func() { err = errors.Join(err, client.Close()) }()

	// The plan's limits are this process's own: the workers' would take a turn for the plan and another for the job.
	all, err := waiter.New(waiter.Config{Rate: c.rate, Burst: burst})
	if err != nil {
		return err
	}
	defer all.Close()
	names := append(slices.Sorted(maps.Keys(c.tenants)), "guest") // guest stands for those without a rate of their own
	spreaders := make([]*queue.Spreader, len(names))
	for i, name := range names {
		own, err := waiter.New(waiter.Config{Rate: c.rateOf(name), Burst: burst})
		if err != nil {
			return err
		}
		defer own.Close()
		spreaders[i] = queue.NewSpreader(client, sluice.All(all, own))
	}

	var last time.Time
	for n := range c.produce {
		i := n % len(names)
		info, err := spreaders[i].Enqueue(ctx, newTask(names[i], n))
		if err != nil {
			return fmt.Errorf("%d of %d jobs are in the queue: %w", n, c.produce, err)
		}
		if info.NextProcessAt.After(last) {
			last = info.NextProcessAt
		}
	}
	fmt.Fprintf(stdout, "%d jobs for %v are in the queue, the last one for %s\n", c.produce, names, last.Format(time.TimeOnly))
	return nil
}

func newTask(tenant string, n int) *asynq.Task {
	payload := fmt.Appendf(nil, `{"tenant":%q,"n":%d}`, tenant, n)
	return asynq.NewTaskWithHeaders(taskType, payload, map[string]string{tenantHeader: tenant}, asynq.MaxRetry(5))
}
