package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// A world is one scenario's Redis, its producers, and what became of its tasks.
type world struct {
	*ledger
	server *server
	redis  asynq.RedisClientOpt
	client *asynq.Client
	insp   *asynq.Inspector
	rdb    *redis.Client
	begun  time.Time // when the worker started
	queued int       // tasks enqueued
	queues map[string]bool
	ends   []func()
}

// A broken is a scenario that could not be played, which is not one that missed its target.
type broken struct{ error }

func check(err error) {
	if err != nil {
		panic(broken{err})
	}
}

func newWorld(redisArgs ...string) *world {
	s, err := startServer(redisArgs...)
	check(err)
	w := &world{ledger: newLedger(), server: s, redis: asynq.RedisClientOpt{Addr: s.addr}, queues: map[string]bool{}}
	w.client, w.insp = asynq.NewClient(w.redis), asynq.NewInspector(w.redis)
	w.rdb = redis.NewClient(&redis.Options{Addr: s.addr})
	w.ends = append(w.ends, w.watchStalls())
	return w
}

func (w *world) close() {
	for i := len(w.ends) - 1; i >= 0; i-- {
		w.ends[i]()
	}
	_, _, _ = w.client.Close(), w.insp.Close(), w.rdb.Close()
	w.server.remove()
}

// enqueue puts n tasks of a kind into a queue of the same name, or where opts say.
func (w *world) enqueue(kind string, n int, opts ...asynq.Option) {
	for range n {
		now := time.Now()
		info, err := w.client.Enqueue(asynq.NewTask(kind, strconv.AppendInt(nil, now.UnixNano(), 10)), opts...)
		check(err)
		w.queues[info.Queue] = true
		w.queued++
	}
}

func limit(rate sluice.Rate) sluice.Limiter {
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: 1})
	check(err)
	return l
}

// byKind is a Route for tasks whose type is their limit's name.
func byKind(limits map[string]sluice.Limiter) func(context.Context, *asynq.Task) sluice.Limiter {
	return func(_ context.Context, t *asynq.Task) sluice.Limiter {
		if l, ok := limits[t.Type()]; ok {
			return l
		}
		return nil
	}
}

// gate returns a Gate that tells the ledger what it defers.
func (w *world) gate(cfg queue.Config) *queue.Gate {
	cfg.Logger = slog.New(slog.DiscardHandler)
	cfg.OnDefer = func(_ context.Context, d queue.Deferral) {
		w.add(event{What: "defer", ID: d.TaskID, Kind: d.Type, At: time.Now()})
	}
	g, err := queue.NewGate(cfg)
	check(err)
	return g
}

// run starts a worker behind a Gate. A nil handler does nothing.
func (w *world) run(g *queue.Gate, cfg asynq.Config, handler asynq.HandlerFunc) *asynq.Server {
	srv := w.serve(g.Configure(w.failures(cfg)), g.Middleware, handler)
	w.ends = append(w.ends, func() { srv.Stop(); g.Drain(); srv.Shutdown() })
	return srv
}

// failures has each error that the user's ErrorHandler is told noted.
func (w *world) failures(cfg asynq.Config) asynq.Config {
	cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		id, _ := asynq.GetTaskID(ctx)
		w.add(event{What: "fail", ID: id, Kind: t.Type(), At: time.Now()})
	})
	return cfg
}

func (w *world) serve(cfg asynq.Config, mw asynq.MiddlewareFunc, handler asynq.HandlerFunc) *asynq.Server {
	cfg.LogLevel = asynq.FatalLevel
	srv := asynq.NewServer(w.redis, cfg)
	check(w.rdb.ConfigResetStat(context.Background()).Err())
	w.begun = time.Now()
	check(srv.Start(mw(w.handler(handler))))
	return srv
}

// handler notes each start and each success of another. A nil one does nothing.
func (w *world) handler(other asynq.HandlerFunc) asynq.HandlerFunc {
	return func(ctx context.Context, t *asynq.Task) error {
		e := born(ctx, t)
		e.What, e.At = "start", time.Now()
		w.add(e)
		if other != nil {
			if err := other(ctx, t); err != nil {
				return err
			}
		}
		e.What, e.At = "done", time.Now()
		w.add(e)
		return nil
	}
}

// born reads what a task tells of itself.
func born(ctx context.Context, t *asynq.Task) event {
	e := event{Kind: t.Type()}
	e.ID, _ = asynq.GetTaskID(ctx)
	e.Retried, _ = asynq.GetRetryCount(ctx)
	if ns, err := strconv.ParseInt(string(t.Payload()), 10, 64); err == nil {
		e.Born = time.Unix(0, ns)
	}
	return e
}

// inRedis is what Asynq's own books say at the end.
func (w *world) inRedis() (left, archived, failed int) {
	for q := range w.queues {
		i, err := w.insp.GetQueueInfo(q)
		check(err)
		left += i.Size - i.Archived
		archived += i.Archived
		failed += i.FailedTotal
	}
	return left, archived, failed
}

func (w *world) commands() int {
	n, err := commandsOf(w.rdb)
	check(err)
	return n
}

func ideal(n int, rate sluice.Rate) time.Duration { return rate.TimeFor(int64(n) - 1) }

func key(i int) string { return fmt.Sprintf("key%d", i) }
