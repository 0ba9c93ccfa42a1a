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
	// A task whose delivery or answer was on the way when Redis stopped is active in Asynq's books until its lease ends.
	// Asynq fetches one at a time, so at most one has not been seen here. All others are done.
	w.await("t:a", 59, 30*time.Second)
	w.until("nothing left to start", func() bool {
		i := w.info("default")
		return i.Size == i.Active && w.count("t:a")+i.Active >= 60
	})
	w.held("t:a", 10, 1)
	w.unharmed("default")
	all := w.all()
	t.Logf("%d of 60 tasks at 10/s with an outage of 1.5s in %v, %d deferrals", len(all), all[len(all)-1].at.Sub(w.begun), g.Stats().Deferred)
}
