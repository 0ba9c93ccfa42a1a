package queue

import (
	"context"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A caller moves deferred tasks from Asynq's retry set into its pending list.
//
// Inspector.RunTask does nearly that, but it also runs what was archived or completed meanwhile: a task that another
// process had finished, kept for its Retention, would run twice. It puts the task at the tail, behind 20,000 fresh ones
// perhaps, and its turn would pass; and it costs 7 commands. This one costs 4, touches only what is in the retry set,
// and puts it at the head, as Asynq itself does with what it requeues.
type caller struct {
	connect func() redis.UniversalClient

	mu     sync.Mutex
	client redis.UniversalClient // nil: not connected, or closed
}

type answer int

const (
	pulled      answer = iota // it is pending
	busy                      // it is active: not in the retry set yet, or run by somebody
	gone                      // it is elsewhere, or nowhere
	unreachable               // Redis did not answer
)

// KEYS: the queue's retry set, its pending list, the task's hash. ARGV: the task's ID, and the command that pushes it:
// Asynq pops on the right.
var pullScript = redis.NewScript(`
if redis.call("ZREM", KEYS[1], ARGV[1]) == 1 then
  redis.call(ARGV[2], KEYS[2], ARGV[1])
  redis.call("HSET", KEYS[3], "state", "pending")
  return 0
end
local state = redis.call("HGET", KEYS[3], "state")
if state == "pending" then return 0 end
if state == "active" then return 1 end
return 2`)

func (c *caller) open() redis.UniversalClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		c.client = c.connect()
	}
	return c.client
}

func (c *caller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		_ = c.client.Close() // nothing to lose: what was not called comes back by itself
		c.client = nil
	}
}

func (c *caller) pull(ctx context.Context, key taskKey, first bool) answer {
	push := "LPUSH"
	if first {
		push = "RPUSH"
	}
	prefix := "asynq:{" + key.queue + "}:"
	keys := []string{prefix + "retry", prefix + "pending", prefix + "t:" + key.id}
	n, err := pullScript.Run(ctx, c.open(), keys, key.id, push).Int()
	if err != nil {
		return unreachable
	}
	return answer(n)
}

// deadline asks for a task's own Deadline; zero: it has only a Timeout. false: Redis did not say, and the task must not
// wait for it.
func (c *caller) deadline(ctx context.Context, queue, id string) (time.Time, bool) {
	client, end := c.open(), make(chan time.Time, 1)
	go func() {
		defer close(end)
		if info, err := asynq.NewInspectorFromRedisClient(client).GetTaskInfo(queue, id); err == nil {
			end <- info.Deadline
		}
	}()
	timer := time.NewTimer(margin / 2)
	defer timer.Stop()
	select {
	case t, ok := <-end:
		return t, ok
	case <-timer.C:
	case <-ctx.Done():
	}
	return time.Time{}, false
}
