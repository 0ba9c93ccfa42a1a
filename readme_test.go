package sluice_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/httplimit"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/keyed"
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

func readmePace(ctx context.Context, redisOpt asynq.RedisConnOpt, limiter sluice.Limiter) error {
	gate, err := queue.NewGate(queue.Config{Limiter: limiter})
	if err != nil {
		return err
	}
	srv := asynq.NewServer(redisOpt, gate.Configure(asynq.Config{Concurrency: 10}))
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

func readmeRoute(redisOpt asynq.RedisConnOpt) (*queue.Gate, error) {
	customers, err := keyed.New(keyed.Config[string]{
		New: func(string) (sluice.Limiter, error) {
			return waiter.New(waiter.Config{Rate: sluice.PerSecond(5), Burst: 1})
		},
		MaxKeys: 10_000,
	})
	if err != nil {
		return nil, err
	}
	return queue.NewGate(queue.Config{
		Redis: redisOpt, // calls a deferred task back for its slot; without it, by Asynq's clock of whole seconds
		Route: func(ctx context.Context, t *asynq.Task) sluice.Limiter {
			if t.Type() != "sync" {
				return nil // not limited
			}
			return customers.For(string(t.Payload()))
		},
	})
}

func readmeDoor(mux *http.ServeMux, limiter sluice.Limiter, search http.Handler) error {
	limit, err := httplimit.New(httplimit.Config{Limiter: limiter, MaxWait: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	mux.Handle("GET /search", limit(search)) // over it, and not due in 200 ms: 429 with a Retry-After that is true
	return nil
}

func readmeCluster(client redis.UniversalClient) (sluice.Limiter, error) {
	limiter, err := cluster.New(client, cluster.Config{Name: "payments api", Rate: sluice.PerSecond(50), Burst: 5})
	return limiter, err
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
	before, err := os.ReadFile("bench/gate/readme_test.go") // what is replaced needs what is measured against
	require.NoError(t, err)
	here = append(here, before...)
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	require.Len(t, blocks, 7)
	for _, b := range blocks {
		code := "\t" + strings.ReplaceAll(strings.TrimSuffix(b[1], "\n"), "\n", "\n\t") + "\n"
		require.Contains(t, string(here), strings.ReplaceAll(code, "\t\n", "\n"))
	}
}

func TestTheREADMEsUses(t *testing.T) {
	require.NoError(t, readmeWait(t.Context(), []string{"a", "b", "c"}))

	addr := redistest.Start(t)
	redisOpt := asynq.RedisClientOpt{Addr: addr}
	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(50), Burst: 10})
	require.NoError(t, err)
	client := asynq.NewClient(redisOpt)
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
	require.NoError(t, readmePace(ctx, redisOpt, limiter))
	require.EqualValues(t, 1, limiter.Stats().Granted)

	gate, err := readmeRoute(redisOpt)
	require.NoError(t, err)
	gate.Drain()

	mux := http.NewServeMux()
	none, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 1})
	require.NoError(t, err)
	require.NoError(t, readmeDoor(mux, none, http.NotFoundHandler()))
	for _, status := range []int{http.StatusNotFound, http.StatusTooManyRequests} {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/search", nil))
		require.Equal(t, status, rec.Code)
	}

	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer rdb.Close()
	shared, err := readmeCluster(rdb)
	require.NoError(t, err)
	require.NoError(t, shared.Wait(t.Context(), 5))
	require.NoError(t, shared.(*cluster.Limiter).Close())

	asked := func(wait time.Duration, err error) error {
		mux := asynq.NewServeMux()
		readmeDefer(mux, func(context.Context, []byte) (time.Duration, error) { return wait, err })
		return mux.ProcessTask(t.Context(), asynq.NewTask("report", nil))
	}
	require.NoError(t, asked(0, nil))
	require.True(t, queue.IsDeferred(asked(time.Second, errTooManyRequests)))
	require.True(t, queue.IsDeferred(asked(0, errNotReady)))
}
