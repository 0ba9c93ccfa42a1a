package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice/queue"
)

const taskType = "deliver"

// A delivery posts one job to the downstream.
type delivery struct {
	url    string
	client *http.Client
	log    *slog.Logger
}

func newDelivery(c config, log *slog.Logger) *delivery {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = c.concurrency // 2 by default, and the others would connect anew for each job
	return &delivery{c.downstream, &http.Client{Transport: transport, Timeout: c.timeout}, log}
}

// ProcessTask returns nil when the downstream has the job. An error is a failure, which Asynq retries with its own delays;
// a 429 is none.
func (d *delivery) ProcessTask(ctx context.Context, task *asynq.Task) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, bytes.NewReader(task.Payload()))
	if err != nil {
		return err
	}
	id, _ := asynq.GetTaskID(ctx)
	tenant := task.Headers()[tenantHeader]
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Tenant", tenant)
	// A worker that dies between the post and Asynq's note of it posts again: the downstream can tell by this.
	req.Header.Set("Idempotency-Key", id)
	resp, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // read to its end the connection can be used again

	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		wait := retryAfter(resp.Header.Get("Retry-After"), time.Now())
		d.log.Warn("the downstream wants a rest", "tenant", tenant, "retry_after", wait.String())
		// Stops both limits of the job, in all workers. The quota is one for all tenants; where each has its own, only
		// the tenant's may stop: route by tenants alone then, and pass the global limit in here, by its Wait.
		return queue.Backoff(wait)
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s answered %s", d.url, resp.Status)
	}
	return nil
}

// retryAfter reads seconds or a date. Where a 429 says nothing that helps it is a second.
func retryAfter(text string, now time.Time) time.Duration {
	if s, err := strconv.ParseUint(text, 10, 31); err == nil {
		return max(time.Second, time.Duration(s)*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Second, at.Sub(now))
	}
	return time.Second
}
