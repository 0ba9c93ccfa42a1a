package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/time/rate"
)

// What the README says is replaced, word for word, so that it compiles; a test of the root module compares.

var errRateLimited = errors.New("rate limited")

func send(context.Context, string) error { return nil }

func readmeBefore(redisOpt asynq.RedisConnOpt) (*asynq.Server, asynq.HandlerFunc) {
	limiter := rate.NewLimiter(50, 50)
	srv := asynq.NewServer(redisOpt, asynq.Config{
		IsFailure: func(err error) bool { return !errors.Is(err, errRateLimited) },
		RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
			if errors.Is(err, errRateLimited) {
				return time.Duration(rand.IntN(10)) * time.Second
			}
			return asynq.DefaultRetryDelayFunc(n, err, t)
		},
	})
	handler := func(ctx context.Context, t *asynq.Task) error {
		if !limiter.Allow() {
			return errRateLimited // archived, that is dropped, on its last attempt
		}
		return send(ctx, string(t.Payload()))
	}
	return srv, handler
}

func TestWhatTheREADMEReplacesRefusesWhatIsOverTheLimit(t *testing.T) {
	_, handler := readmeBefore(asynq.RedisClientOpt{Addr: "127.0.0.1:1"})
	task, refused := asynq.NewTask("email", nil), 0
	for range 60 {
		if err := handler(context.Background(), task); errors.Is(err, errRateLimited) {
			refused++
		}
	}
	if refused < 9 || refused > 10 {
		t.Errorf("%d of 60 at once refused, want 10, or 9 after a slow start", refused)
	}
}
