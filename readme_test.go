package sluice_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// The functions below are the README's code, word for word, so that it compiles; the test compares.

func send(context.Context, string) error { return nil }

func readmeWait(ctx context.Context, jobs []string) error {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(50), Burst: 10})
	if err != nil {
		return err
	}
	g, ctx := waiter.NewGroup(ctx, limiter) // an errgroup that takes one unit before each function
	for _, job := range jobs {
		g.Go(func() error { return send(ctx, job) })
	}
	return g.Wait()
}

func readmePace(ctx context.Context, redis asynq.RedisConnOpt, limiter sluice.Limiter) error {
	gate, err := queue.NewGate(queue.Config{Limiter: limiter})
	if err != nil {
		return err
	}
	srv := asynq.NewServer(redis, gate.Configure(asynq.Config{Concurrency: 10}))
	mux := asynq.NewServeMux()
	mux.Use(gate.Middleware)
	mux.HandleFunc("email", func(ctx context.Context, t *asynq.Task) error { return send(ctx, string(t.Payload())) })
	if err := srv.Start(mux); err != nil {
		return err
	}
	<-ctx.Done()
	srv.Stop()
	gate.Drain() // hands back at once what waits for its turn
	srv.Shutdown()
	return nil
}

var errTooManyRequests, errNotReady = errors.New("429"), errors.New("not ready")

func readmeDefer(mux *asynq.ServeMux, callReportService func(context.Context, []byte) (time.Duration, error)) {
	mux.HandleFunc("report", func(ctx context.Context, t *asynq.Task) error {
		wait, err := callReportService(ctx, t.Payload())
		switch {
		case errors.Is(err, errTooManyRequests): // a 429 with Retry-After
			return queue.Backoff(wait) // nothing starts under this limit for so long
		case errors.Is(err, errNotReady):
			return queue.Defer(10 * time.Second) // this task alone comes again
		}
		return err
	})
}

func TestTheREADMEsCodeIsTheCodeThatCompilesHere(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	here, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 3)
	for _, b := range blocks {
		code := "\t" + strings.ReplaceAll(strings.TrimSuffix(b[1], "\n"), "\n", "\n\t") + "\n"
		require.Contains(t, string(here), strings.ReplaceAll(code, "\t\n", "\n"))
	}
}

func TestTheREADMEsUses(t *testing.T) {
	require.NoError(t, readmeWait(t.Context(), []string{"a", "b", "c"}))

	redis := asynq.RedisClientOpt{Addr: redistest.Start(t)}
	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(50), Burst: 10})
	require.NoError(t, err)
	client := asynq.NewClient(redis)
	defer client.Close()
	_, err = client.Enqueue(asynq.NewTask("email", []byte("you")))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for ctx.Err() == nil && limiter.Stats().Granted == 0 {
			time.Sleep(time.Millisecond)
		}
	}()
	require.NoError(t, readmePace(ctx, redis, limiter))
	require.EqualValues(t, 1, limiter.Stats().Granted)

	asked := func(wait time.Duration, err error) error {
		mux := asynq.NewServeMux()
		readmeDefer(mux, func(context.Context, []byte) (time.Duration, error) { return wait, err })
		return mux.ProcessTask(t.Context(), asynq.NewTask("report", nil))
	}
	require.NoError(t, asked(0, nil))
	require.True(t, queue.IsDeferred(asked(time.Second, errTooManyRequests)))
	require.True(t, queue.IsDeferred(asked(0, errNotReady)))
}
