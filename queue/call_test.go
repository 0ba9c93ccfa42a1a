package queue

import (
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/waiter"
)

// A task that was called before Asynq had put it away, when Redis then could not be asked for a moment, went back into the
// backlog after its caller had ended: nobody called it any more.
func TestATaskThatGoesBackIntoTheBacklogIsCalled(t *testing.T) {
	lim, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(10), Burst: 1})
	require.NoError(t, err)
	defer lim.Close()
	g, err := NewGate(Config{Limiter: lim, Redis: asynq.RedisClientOpt{Addr: redistest.Start(t)}})
	require.NoError(t, err)
	defer g.Drain()
	key := taskKey{"default", "a"}
	client := g.caller.open()
	set := func(c redis.UniversalClient) {
		g.caller.mu.Lock()
		defer g.caller.mu.Unlock()
		g.caller.client = c
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Microsecond) {
			g.mu.Lock()
			done := ok()
			g.mu.Unlock()
			if done {
				return
			}
			require.False(t, time.Now().After(end), "not within 10 s: %s", what)
		}
	}

	require.NoError(t, client.HSet(t.Context(), key.hash(), "state", "active").Err()) // busy: Asynq has not put it away yet
	g.mu.Lock()
	l := g.laneOfLocked(lim)
	srv := &server{slots: 8, calls: make(chan struct{}, 4)}
	now := time.Now()
	g.parkLocked(&turn{ctx: t.Context(), id: "a", queue: "default", n: 1, lane: l, srv: srv}, now, now.Add(time.Hour), time.Time{})
	p := g.parked[key]
	g.mu.Unlock()
	until("its caller has called it and ended", func() bool { return p.called && !l.calling })

	nowhere := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer nowhere.Close()
	set(nowhere)
	until("back in the backlog", func() bool { return !p.called })
	set(client)
	require.NoError(t, client.ZAdd(t.Context(), key.in("retry"), redis.Z{Score: float64(now.Add(time.Hour).Unix()), Member: "a"}).Err())
	for end := time.Now().Add(5 * time.Second); client.LLen(t.Context(), key.in("pending")).Val() == 0; time.Sleep(time.Millisecond) {
		require.False(t, time.Now().After(end), "called again: it would wait for Asynq's clock, an hour")
	}
}
