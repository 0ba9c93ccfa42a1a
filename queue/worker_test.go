package queue_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		work(text)
		return
	}
	goleak.VerifyTestMain(m)
}

const ms = time.Millisecond

func limit(t testing.TB, rate string, burst int) *waiter.Limiter {
	t.Helper()
	r, err := sluice.ParseRate(rate)
	require.NoError(t, err)
	l, err := waiter.New(waiter.Config{Rate: r, Burst: burst})
	require.NoError(t, err)
	return l
}

func gate(t testing.TB, cfg queue.Config) *queue.Gate {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	g, err := queue.NewGate(cfg)
	require.NoError(t, err)
	t.Cleanup(g.Drain)
	return g
}

// A start is one call of a handler.
type start struct {
	id, kind string
	at       time.Time
}

// A worker is a real asynq server behind a Gate, and what it did.
type worker struct {
	t      testing.TB
	redis  asynq.RedisClientOpt
	client *asynq.Client
	insp   *asynq.Inspector
	rdb    *redis.Client
	gate   *queue.Gate
	srv    *asynq.Server
	begun  time.Time

	wake chan struct{}

	mu     sync.Mutex
	starts []start
	stall  time.Duration // the longest that this machine has kept a goroutine from running
}

// newWorker connects to a Redis of its own; nothing runs before run.
func newWorker(t testing.TB) *worker {
	t.Helper()
	addr := redistest.Start(t)
	w := &worker{t: t, redis: asynq.RedisClientOpt{Addr: addr}, wake: make(chan struct{}, 1)}
	w.client, w.insp = asynq.NewClient(w.redis), asynq.NewInspector(w.redis)
	w.rdb = redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() {
		require.NoError(t, w.client.Close())
		require.NoError(t, w.insp.Close())
		require.NoError(t, w.rdb.Close())
	})
	return w
}

func (w *worker) enqueue(kind string, n int, opts ...asynq.Option) {
	w.t.Helper()
	for i := range n {
		_, err := w.client.Enqueue(asynq.NewTask(kind, fmt.Append(nil, i)), opts...)
		require.NoError(w.t, err)
	}
}

type silent struct{}

func (silent) Debug(...any) {}
func (silent) Info(...any)  {}
func (silent) Warn(...any)  {}
func (silent) Error(...any) {}
func (silent) Fatal(...any) {}

// run starts the server. A nil handler does nothing.
func (w *worker) run(g *queue.Gate, cfg asynq.Config, handler asynq.HandlerFunc, mws ...asynq.MiddlewareFunc) {
	w.t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = silent{}
	}
	w.gate = g
	srv := asynq.NewServer(w.redis, g.Configure(cfg))
	w.srv = srv
	mux := asynq.NewServeMux()
	mux.Use(mws...)
	mux.Use(g.Middleware)
	mux.HandleFunc("t:", func(ctx context.Context, task *asynq.Task) error {
		w.seen(ctx, task)
		if handler == nil {
			return nil
		}
		return handler(ctx, task)
	})
	w.watchStalls()
	w.begun = time.Now()
	require.NoError(w.t, srv.Start(mux))
	w.t.Cleanup(func() {
		srv.Stop()
		g.Drain()
		srv.Shutdown()
	})
}

// seen notes a start.
func (w *worker) seen(ctx context.Context, task *asynq.Task) {
	id, _ := asynq.GetTaskID(ctx)
	w.note(start{id, task.Type(), time.Now()})
}

func (w *worker) note(s start) {
	w.mu.Lock()
	w.starts = append(w.starts, s)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *worker) count(kind string) int {
	n := 0
	for _, s := range w.all() {
		if kind == "" || s.kind == kind {
			n++
		}
	}
	return n
}

func (w *worker) all() []start {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.starts)
}

// await waits until n tasks of a kind have started and returns how long that took since run.
func (w *worker) await(kind string, n int, within time.Duration) time.Duration {
	w.t.Helper()
	timeout := time.After(within)
	for {
		if w.count(kind) >= n {
			all := w.all()
			return all[len(all)-1].at.Sub(w.begun)
		}
		select {
		case <-w.wake:
		case <-timeout:
			require.FailNow(w.t, "too slow", "started %d of %d %q tasks in %v", w.count(kind), n, kind, within)
		}
	}
}

// until polls Redis or the Gate for what nobody signals.
func (w *worker) until(what string, ok func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ok, 10*time.Second, 2*ms, what)
}

// peak is the most starts of a kind in any window.
func (w *worker) peak(kind string, window time.Duration) int {
	var at []time.Time
	for _, s := range w.all() {
		if kind == "" || s.kind == kind {
			at = append(at, s.at)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	most, first := 0, 0
	for i := range at {
		for at[i].Sub(at[first]) >= window {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// watchStalls measures how late goroutines run on this machine while the test does: a start that is noted late counts in a
// window into which its turn does not fall.
func (w *worker) watchStalls() {
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				begun := time.Now()
				time.Sleep(ms)
				late := time.Since(begun) - ms
				w.mu.Lock()
				w.stall = max(w.stall, late)
				w.mu.Unlock()
			}
		}()
	}
}

// held fails the test if more tasks of a kind have started in any second than the limit, perSecond and burst, allows.
func (w *worker) held(kind string, perSecond int, burst int) {
	w.t.Helper()
	w.mu.Lock()
	stall := w.stall
	w.mu.Unlock()
	most := burst + int(time.Duration(perSecond)*(time.Second+stall)/time.Second)
	peak := w.peak(kind, time.Second)
	w.t.Logf("%q: %d starts at most in a second; %d allowed, with goroutines %v late", kind, peak, most, stall)
	require.LessOrEqual(w.t, peak, most)
}

// within fails the test if something took longer than it may, and than this machine was late ten times over.
func (w *worker) within(most, took time.Duration) {
	w.t.Helper()
	w.mu.Lock()
	stall := w.stall
	w.mu.Unlock()
	require.LessOrEqual(w.t, took, most+10*stall, "%v allowed, with goroutines %v late", most, stall)
}

// once fails the test if a task has started twice.
func (w *worker) once() {
	w.t.Helper()
	ids := map[string]int{}
	for _, s := range w.all() {
		ids[s.id]++
		require.Equal(w.t, 1, ids[s.id], "task %s started again", s.id)
	}
}

func (w *worker) info(queue string) *asynq.QueueInfo {
	w.t.Helper()
	info, err := w.insp.GetQueueInfo(queue)
	require.NoError(w.t, err)
	return info
}

// unharmed fails the test unless a queue has no failures and no archive.
func (w *worker) unharmed(queue string) {
	w.t.Helper()
	info := w.info(queue)
	require.Zero(w.t, info.Archived, "archived")
	require.Zero(w.t, info.FailedTotal, "failed")
}

// finished waits until Asynq's own books agree that n tasks of a queue succeeded and none is left.
func (w *worker) finished(queue string, n int) {
	w.t.Helper()
	w.until("all done and nothing left", func() bool {
		i := w.info(queue)
		return i.ProcessedTotal == n && i.Size == 0
	})
	w.unharmed(queue)
}

// commands is how many commands Redis has executed for everybody.
func (w *worker) commands() int {
	w.t.Helper()
	var n int
	text, err := w.rdb.Info(context.Background(), "stats").Result()
	require.NoError(w.t, err)
	for line := range strings.Lines(text) {
		if _, err := fmt.Sscanf(line, "total_commands_processed:%d", &n); err == nil {
			return n
		}
	}
	return 0
}
