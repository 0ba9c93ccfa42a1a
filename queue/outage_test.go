package queue_test

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/queue"
)

// Redis goes away in the middle and comes back: work goes on by itself, nothing is lost and the limit holds.
func TestRedisComesBack(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")
	w := &worker{t: t, redis: asynq.RedisClientOpt{Addr: server.Addr}, wake: make(chan struct{}, 1)}
	w.client, w.insp = asynq.NewClient(w.redis), asynq.NewInspector(w.redis)
	w.rdb = redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() {
		require.NoError(t, w.client.Close())
		require.NoError(t, w.insp.Close())
		require.NoError(t, w.rdb.Close())
	})
	w.enqueue("t:a", 60)
	lim := limit(t, "10/s", 1)
	g := gate(t, queue.Config{Redis: w.redis, Route: byType(map[string]sluice.Limiter{"t:a": lim})})
	w.run(g, asynq.Config{Concurrency: 10}, nil)

	w.await("t:a", 15, 10*time.Second)
	server.Stop()
	time.Sleep(1500 * ms) // the outage itself
	require.NoError(t, server.Restart())
	w.await("t:a", 60, 30*time.Second)
	w.held("t:a", 10, 1)
	// A task whose answer was lost on the way is active in Asynq's books until its lease ends. All others are done.
	w.until("nothing left to start", func() bool {
		i := w.info("default")
		return i.Size == i.Active
	})
	w.unharmed("default")
	t.Logf("60 tasks at 10/s with an outage of 1.5s in %v, %d deferrals", w.all()[59].at.Sub(w.begun), g.Stats().Deferred)
}
