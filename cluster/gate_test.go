package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	gates "github.com/fadf4e53/sluice/queue"
)

// gateAndTell is a worker under a Gate whose limiter is shared with other workers.
func gateAndTell() int {
	o, client := ordered()
	l, err := New(client, Config{Name: o.Name, Rate: o.Rate, Burst: o.Burst})
	if err != nil {
		panic(err)
	}
	opt := asynq.RedisClientOpt{Addr: o.Addr}
	cfg := gates.Config{Redis: opt, Limiter: l}
	if o.Mixed {
		cfg.Limiter = nil
		cfg.Route = func(_ context.Context, task *asynq.Task) sluice.Limiter {
			if task.Type() == "limited" {
				return l
			}
			return nil
		}
	}
	g, err := gates.NewGate(cfg)
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	var starts []time.Time
	mux := asynq.NewServeMux()
	mux.Use(g.Middleware)
	mux.HandleFunc("limited", func(context.Context, *asynq.Task) error {
		at := time.Now()
		mu.Lock()
		defer mu.Unlock()
		starts = append(starts, at)
		return nil
	})
	mux.HandleFunc("free", func(context.Context, *asynq.Task) error { return nil })
	time.Sleep(time.Until(o.Begin))
	srv := asynq.NewServer(opt, g.Configure(asynq.Config{Concurrency: o.Concurrency, LogLevel: asynq.FatalLevel}))
	if err := srv.Start(mux); err != nil {
		panic(err)
	}
	time.Sleep(time.Until(o.Begin.Add(o.For)))
	srv.Stop()
	g.Drain()
	srv.Shutdown()
	if o.Mixed && g.Stats().Deferred == 0 {
		fmt.Println("nothing was deferred")
	}
	if l.Close() != nil {
		return 1
	}
	return tell(starts)
}

// Two worker processes, one limit of 50/s for both. Where tasks wait in place the rate is whole. Where other work makes
// the gates defer, a task that one of them calls back may come to the other, which has it wait once more: the limit is
// kept and no task is harmed, but the rate is what the Gate makes of it.
func TestGateOverTwoProcesses(t *testing.T) {
	t.Parallel()
	for _, mixed := range []bool{false, true} {
		t.Run(fmt.Sprintf("mixed=%v", mixed), func(t *testing.T) {
			t.Parallel()
			server := redistest.StartServer(t)
			opt := asynq.RedisClientOpt{Addr: server.Addr}
			client := asynq.NewClient(opt)
			defer func() { _ = client.Close() }()
			const tasks, rate, burst = 300, 50, 5
			for i := range tasks {
				_, err := client.Enqueue(asynq.NewTask("limited", nil), asynq.MaxRetry(3))
				require.NoError(t, err)
				if mixed && i%10 == 0 {
					_, err = client.Enqueue(asynq.NewTask("free", nil))
					require.NoError(t, err)
				}
			}
			each := spawn(t, "gate", 2, order{
				Addr: server.Addr, Name: name(), Rate: sluice.PerSecond(rate), Burst: burst, For: 8 * time.Second,
				Concurrency: 10, Mixed: mixed,
			})
			all := slices.Concat(each...)
			slices.SortFunc(all, time.Time.Compare)
			t.Logf("%d of %d tasks, the last at %v (ideal %v), %d and %d; at most %d in a second", len(all), tasks,
				all[len(all)-1].Sub(all[0]), sluice.PerSecond(rate).TimeFor(tasks-burst), len(each[0]), len(each[1]), most(all))
			require.LessOrEqual(t, most(all), rate+burst, "promise 1, over both")
			require.Greater(t, min(len(each[0]), len(each[1])), len(all)/5, "the work spreads over both")
			if !mixed {
				require.Len(t, all, tasks, "every task ran, once")
			}
			insp := asynq.NewInspector(opt)
			defer func() { _ = insp.Close() }()
			info, err := insp.GetQueueInfo("default")
			require.NoError(t, err)
			require.Zero(t, info.Archived+info.Failed, "%+v", info)
			require.Equal(t, tasks-len(all), info.Pending+info.Retry+info.Active+info.Scheduled, "and none is lost: %+v", info)
		})
	}
}
