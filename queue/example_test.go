package queue_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// A worker that starts no more than 50 jobs a second, whatever is in the queue.
func ExampleGate() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(50), Burst: 1})
	if err != nil {
		panic(err)
	}
	gate, err := queue.NewGate(queue.Config{Limiter: limiter})
	if err != nil {
		panic(err)
	}
	cfg := gate.Configure(asynq.Config{Concurrency: 10}) // for asynq.NewServer

	mux := asynq.NewServeMux()
	mux.Use(gate.Middleware)
	mux.HandleFunc("email:send", func(context.Context, *asynq.Task) error { return nil })

	// What srv.Run(mux) does with each task:
	begun := time.Now()
	for range 6 {
		if err := mux.ProcessTask(context.Background(), asynq.NewTask("email:send", nil)); err != nil {
			panic(err)
		}
	}
	fmt.Println("100ms or more:", time.Since(begun) >= 100*time.Millisecond)
	fmt.Println("started:", gate.Stats().Started, "handed back:", gate.Stats().Deferred)
	fmt.Println("checks the queue every", cfg.TaskCheckInterval)
	// Output:
	// 100ms or more: true
	// started: 6 handed back: 0
	// checks the queue every 50ms
}

// One limit for each customer, and none for the rest.
func ExampleNewGate_route() {
	limits := map[string]sluice.Limiter{}
	for _, customer := range []string{"acme", "globex"} {
		l, err := waiter.New(waiter.Config{Rate: sluice.Per(10, time.Minute), Burst: 2})
		if err != nil {
			panic(err)
		}
		limits[customer] = l
	}
	gate, err := queue.NewGate(queue.Config{
		Route: func(_ context.Context, t *asynq.Task) sluice.Limiter { return limits[string(t.Payload())] },
		// Hand back what would wait longer. With Redis set too it is called back in time for its turn.
		MaxWait: time.Second,
		OnDefer: func(_ context.Context, d queue.Deferral) {
			fmt.Println(d.Type, "comes back in", d.In.Round(time.Second))
		},
	})
	if err != nil {
		panic(err)
	}
	cfg := gate.Configure(asynq.Config{}) // for asynq.NewServer, which gives tasks their context
	h := gate.Middleware(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		fmt.Println("report for", string(t.Payload()))
		return nil
	}))
	for _, customer := range []string{"acme", "acme", "acme", "globex", "nobody"} {
		err := h.ProcessTask(cfg.BaseContext(), asynq.NewTask("report", []byte(customer)))
		if err != nil && !queue.IsDeferred(err) {
			panic(err)
		}
	}
	// Output:
	// report for acme
	// report for acme
	// report comes back in 6s
	// report for globex
	// report for nobody
}

// A handler that was told to slow down stops its limit for everybody, and its task comes back.
func ExampleBackoff() {
	retryAfter := 30 * time.Second // of a 429
	handler := func(context.Context, *asynq.Task) error {
		return fmt.Errorf("calling the API: %w", queue.Backoff(retryAfter))
	}
	err := handler(context.Background(), nil)
	fmt.Println(err)
	fmt.Println(queue.IsDeferred(err), queue.IsDeferred(errors.New("boom")))
	// Output:
	// calling the API: queue: deferred for 30s
	// true false
}

// A producer that plans ahead: 10 jobs a second, each scheduled for its own place.
func ExampleSpreader() {
	plan, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(10), Burst: 1})
	if err != nil {
		panic(err)
	}
	store := miniredis.NewMiniRedis() // for this example; in production your Redis
	if err := store.Start(); err != nil {
		panic(err)
	}
	defer store.Close()
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: store.Addr()})
	defer func() { _ = client.Close() }()
	spread := queue.NewSpreader(client, plan)

	var last *asynq.TaskInfo
	for i := range 100 {
		info, err := spread.Enqueue(context.Background(), asynq.NewTask("report", nil))
		if err != nil {
			panic(err)
		}
		if last = info; i < 2 {
			fmt.Println(info.State)
		}
	}
	fmt.Println("the last in about", time.Until(last.NextProcessAt).Round(5*time.Second))
	// Output:
	// pending
	// scheduled
	// the last in about 10s
}
