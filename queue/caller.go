package queue

import (
	"context"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A taskKey names a task. Asynq's IDs are unique within a queue.
type taskKey struct{ queue, id string }

// in names one of the keys that asynq v0.26 keeps for a queue.
func (k taskKey) in(what string) string { return "asynq:{" + k.queue + "}:" + what }

func (k taskKey) hash() string { return k.in("t:" + k.id) }

// A caller moves deferred tasks from Asynq's retry set into its pending list.
//
// Inspector.RunTask does nearly that, but it also runs what was archived or completed meanwhile: a task that another
// process had finished, kept for its Retention, would run twice. It puts the task at the tail, behind 20,000 fresh ones
// perhaps, and its turn would pass; and it costs 7 commands. This one costs 4, touches only what is in the retry set,
// and puts it at the head, as Asynq itself does with what it requeues.
type caller struct {
	connect func() redis.UniversalClient

	mu     sync.Mutex
	client redis.UniversalClient // after close it is the closed one, and who is late gets an error
	shut   bool
}

type answer int

const (
	pulled      answer = iota // it is pending
	busy                      // it is active: not in the retry set yet, or run by somebody
	gone                      // it is elsewhere, or nowhere
	unreachable               // Redis did not answer
)

// A mark is a field that a called task has in its hash, which Asynq leaves alone and deletes with the hash: a process
// to which it is delivered, and which has not called it, knows by it that its time has come.
const mark = "sluice"

// KEYS: the queue's retry set, its pending list, the task's hash. ARGV: the task's ID, the command that pushes it (Asynq
// pops on the right), and the mark.
var pullScript = redis.NewScript(`
if redis.call("ZREM", KEYS[1], ARGV[1]) == 1 then
  redis.call(ARGV[2], KEYS[2], ARGV[1])
  redis.call("HSET", KEYS[3], "state", "pending", ARGV[3], "called")
  return 0
end
local state = redis.call("HGET", KEYS[3], "state")
if state == "pending" then return 0 end
if state == "active" then return 1 end
return 2`)

func (c *caller) open() redis.UniversalClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// reopen makes it whole again after close.
func (c *caller) reopen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		c.client, c.shut = c.connect(), false
	}
}

func (c *caller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.shut {
		_ = c.client.Close() // nothing to lose: what was not called comes back by itself
		c.shut = true
	}
}

func (c *caller) pull(ctx context.Context, key taskKey, first bool) answer {
	push := "LPUSH"
	if first {
		push = "RPUSH"
	}
	keys := []string{key.in("retry"), key.in("pending"), key.hash()}
	n, err := pullScript.Run(ctx, c.open(), keys, key.id, push, mark).Int()
	if err != nil {
		return unreachable
	}
	return answer(n)
}

// elsewhere says whether a called task is not in the pending list any more: somebody has it.
func (c *caller) elsewhere(ctx context.Context, key taskKey) bool {
	state, err := c.open().HGet(ctx, key.hash(), "state").Result()
	return err == redis.Nil || err == nil && state != "pending"
}

// unmark says whether a task was called, by whomever, and not delivered since to anybody who asked.
func (c *caller) unmark(ctx context.Context, key taskKey) bool {
	client := c.open()
	_, ok := soon(ctx, func() (struct{}, bool) {
		n, err := client.HDel(ctx, key.hash(), mark).Result()
		return struct{}{}, err == nil && n == 1
	})
	return ok
}

// later puts tasks that are still in a queue's retry set to other times.
func (c *caller) later(ctx context.Context, queue string, times []redis.Z) error {
	return c.open().ZAddXX(ctx, taskKey{queue: queue}.in("retry"), times...).Err()
}

// deadline asks for a task's own Deadline; zero: it has only a Timeout. false: Redis did not say, and the task must not
// wait for it.
func (c *caller) deadline(ctx context.Context, queue, id string) (time.Time, bool) {
	client := c.open()
	return soon(ctx, func() (time.Time, bool) {
		info, err := asynq.NewInspectorFromRedisClient(client).GetTaskInfo(queue, id)
		if err != nil {
			return time.Time{}, false
		}
		return info.Deadline, true
	})
}

// lockLeft is how long a task's Unique lock still holds; false: it has none, or Redis did not say.
func (c *caller) lockLeft(ctx context.Context, key taskKey) (time.Duration, bool) {
	client := c.open()
	return soon(ctx, func() (time.Duration, bool) {
		lock, err := client.HGet(ctx, key.hash(), "unique_key").Result()
		if err != nil || lock == "" {
			return 0, false
		}
		left, err := client.PTTL(ctx, lock).Result()
		return max(0, left), err == nil && left != -1 // -1: it never ends
	})
}

// soon waits for an answer from Redis no longer than a task can afford; go-redis does not obey a ctx while it reads.
func soon[T any](ctx context.Context, ask func() (T, bool)) (answer T, ok bool) {
	end := make(chan T, 1)
	go func() {
		defer close(end)
		if v, ok := ask(); ok {
			end <- v
		}
	}()
	timer := time.NewTimer(margin / 2)
	defer timer.Stop()
	select {
	case answer, ok = <-end:
	case <-timer.C:
	case <-ctx.Done():
	}
	return answer, ok
}
