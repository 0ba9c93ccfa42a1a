package queue_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

// workerEnv makes the test binary a worker of "t:a" tasks, which is started by itself to be killed.
const workerEnv = "SLUICE_TEST_WORKER"

type workerSpec struct {
	Addr    string
	Rate    int64 // a second
	Slots   int
	Cluster bool // one limit for all processes
}

// A line is what a worker process tells of one task.
type line struct {
	Deferred bool
	ID       string
	Retried  int
	At       time.Time
}

func work(text string) {
	var s workerSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	var mu sync.Mutex
	tell := func(l line) {
		mu.Lock()
		defer mu.Unlock()
		if json.NewEncoder(os.Stdout).Encode(l) != nil {
			os.Exit(1)
		}
	}
	conn := asynq.RedisClientOpt{Addr: s.Addr}
	lim, err := s.limiter()
	if err != nil {
		panic(err)
	}
	g, err := queue.NewGate(queue.Config{
		Redis: conn, Logger: slog.New(slog.DiscardHandler),
		Route:   byType(map[string]sluice.Limiter{"t:a": lim}),
		OnDefer: func(_ context.Context, d queue.Deferral) { tell(line{true, d.TaskID, 0, time.Now()}) },
	})
	if err != nil {
		panic(err)
	}
	srv := asynq.NewServer(conn, g.Configure(asynq.Config{Concurrency: s.Slots, Logger: silent{}}))
	if err := srv.Start(g.Middleware(asynq.HandlerFunc(func(ctx context.Context, _ *asynq.Task) error {
		id, _ := asynq.GetTaskID(ctx)
		retried, _ := asynq.GetRetryCount(ctx)
		tell(line{false, id, retried, time.Now()})
		return nil
	}))); err != nil {
		panic(err)
	}
	select {}
}

func (s workerSpec) limiter() (sluice.Limiter, error) {
	if s.Cluster {
		return cluster.New(redis.NewClient(&redis.Options{Addr: s.Addr}),
			cluster.Config{Name: "gate", Rate: sluice.PerSecond(s.Rate), Burst: 1})
	}
	return waiter.New(waiter.Config{Rate: sluice.PerSecond(s.Rate), Burst: 1})
}

// process starts a worker in a process of its own and returns what kills it, as kill -9 does. What it starts counts as
// started by w; what it defers is told to deferred.
func (w *worker) process(s workerSpec, deferred func(line)) (kill func()) {
	w.t.Helper()
	s.Addr = w.redis.Addr
	text, err := json.Marshal(s)
	require.NoError(w.t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), workerEnv+"="+string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(w.t, err)
	require.NoError(w.t, cmd.Start())
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var l line
			if json.Unmarshal(lines.Bytes(), &l) != nil {
				continue // cut off by the kill
			}
			if l.Deferred {
				deferred(l)
				continue
			}
			w.note(start{l.ID, "t:a", l.At})
		}
	}()
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill()
			<-read
			_ = cmd.Wait() // "signal: killed"
		})
	}
	w.t.Cleanup(kill)
	return kill
}

// counter counts the deferrals of each task.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(l line) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[l.ID]++
}

func (c *counter) sum() (all, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.n {
		all += n
		most = max(most, n)
	}
	return all, most
}

// A worker is killed with tasks deferred and waiting: the deferred ones come back by Asynq's clock to another worker, and
// nobody starts twice. Those that waited in place are Asynq's to recover, in a minute or two.
func TestKilledWorkerLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 40, asynq.MaxRetry(3))
	w.watchStalls()
	var c counter
	spec := workerSpec{Rate: 10, Slots: 8}
	kill := w.process(spec, c.add)
	w.await("t:a", 8, 20*time.Second)
	kill()
	deferred, _ := c.sum()
	require.Greater(t, deferred, 20, "most are deferred")
	before, at := w.count("t:a"), time.Now()

	w.process(spec, c.add)
	w.until("all have started, but for what waited in the killed worker", func() bool {
		active, err := w.insp.ListActiveTasks("default", asynq.PageSize(100))
		require.NoError(t, err)
		known := map[string]bool{} // one may have started and not been told to Asynq before the kill
		for _, a := range active {
			known[a.ID] = true
		}
		left := len(known)
		for _, s := range w.all() {
			known[s.id] = true
		}
		return w.info("default").Size == left && left <= spec.Slots && len(known) == 40
	})
	t.Logf("%d started before; %d more in %v, of 40", before, w.count("t:a")-before, time.Since(at))
	w.held("", 10, 1)
	w.unharmed("default")
	w.once()
}

// Deferred by one process and delivered to another a task was handed back up to seven times, and half the rate was lost.
func TestTwoProcessesShareAClusterLimit(t *testing.T) {
	t.Parallel()
	w := newWorker(t)
	w.enqueue("t:a", 50)
	w.watchStalls()
	var c counter
	for range 2 {
		w.process(workerSpec{Rate: 10, Slots: 8, Cluster: true}, c.add)
	}
	w.begun = time.Now()
	w.await("t:a", 50, 30*time.Second)
	all := w.all()
	took := all[49].at.Sub(all[0].at)
	sum, most := c.sum()
	t.Logf("50 at 10/s in %v (ideal 4.9s), %d deferrals, a task at most %d", took, sum, most)
	w.within(5700*ms, took)
	require.LessOrEqual(t, sum, 60)
	require.LessOrEqual(t, most, 3)
	w.held("", 10, 1)
	w.finished("default", 50)
	w.once()
}
