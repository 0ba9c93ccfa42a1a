// Package store is the Redis that the demo's jobs live in: an embedded one, or a queue of its own in somebody's.
package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// A Store is the Redis of one run and the queue in it that belongs to this run alone.
type Store struct {
	Opt       asynq.RedisClientOpt
	Queue     string
	embedded  *miniredis.Miniredis // nil: somebody else's
	Inspector *asynq.Inspector
	began     time.Time
}

// Open starts a Redis or asks the given one whether it is there.
func Open(ctx context.Context, addr string) (*Store, error) {
	st := &Store{Queue: "sluice-demo-" + rand.Text(), began: time.Now()}
	if addr == "" {
		m, err := miniredis.Run()
		if err != nil {
			return nil, fmt.Errorf("the embedded Redis does not start: %w", err)
		}
		st.embedded, addr = m, m.Addr()
	} else if err := ping(ctx, addr); err != nil {
		return nil, err
	}
	st.Opt = asynq.RedisClientOpt{Addr: addr}
	st.Inspector = asynq.NewInspector(st.Opt)
	return st, nil
}

// ping tries once. Asynq's own clients would go on trying, and log each failure.
func ping(ctx context.Context, addr string) error {
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, DialTimeout: patience, ContextTimeoutEnabled: true})
	defer c.Close()
	if err := c.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("-redis %s: must be a Redis that answers: %w", addr, err)
	}
	return nil
}

// Close removes every trace of the run and lets go of the Redis.
func (st *Store) Close() error {
	defer st.Inspector.Close()
	if st.embedded != nil {
		st.embedded.Close()
		return nil
	}
	if err := st.Inspector.DeleteQueue(st.Queue, true); err != nil && !errors.Is(err, asynq.ErrQueueNotFound) {
		return fmt.Errorf("-redis %s: queue %s could not be deleted: %w", st.Opt.Addr, st.Queue, err)
	}
	return st.deleteCounters()
}

// deleteCounters deletes what DeleteQueue leaves behind: how much was processed and how much failed, in all, for good, and
// day by day, for 90 days.
func (st *Store) deleteCounters() error {
	prefix := "asynq:{" + st.Queue + "}:"
	keys := []string{prefix + "processed", prefix + "failed"}
	for day := st.began.UTC().Truncate(24 * time.Hour); !day.After(time.Now()); day = day.AddDate(0, 0, 1) {
		date := day.Format(time.DateOnly)
		keys = append(keys, prefix+"processed:"+date, prefix+"failed:"+date)
	}
	c := redis.NewClient(&redis.Options{Addr: st.Opt.Addr})
	defer c.Close()
	if err := c.Del(context.Background(), keys...).Err(); err != nil {
		return fmt.Errorf("-redis %s: the counters of queue %s could not be deleted: %w", st.Opt.Addr, st.Queue, err)
	}
	return nil
}

// Census lists who is in which state, and how many failures Asynq has counted. It is exact once the server has shut
// down: while it runs, jobs move.
func (st *Store) Census() (found map[string]asynq.TaskState, failures int, err error) {
	const page = 1000
	found = make(map[string]asynq.TaskState)
	for _, list := range []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		st.Inspector.ListPendingTasks, st.Inspector.ListActiveTasks, st.Inspector.ListScheduledTasks,
		st.Inspector.ListRetryTasks, st.Inspector.ListArchivedTasks,
	} {
		for n, size := 1, page; size == page; n++ {
			tasks, err := list(st.Queue, asynq.PageSize(page), asynq.Page(n))
			if err != nil {
				return nil, 0, fmt.Errorf("the queue's books cannot be read: %w", err)
			}
			for _, t := range tasks {
				found[t.ID] = t.State
			}
			size = len(tasks)
		}
	}
	q, err := st.Inspector.GetQueueInfo(st.Queue)
	if err != nil {
		return nil, 0, fmt.Errorf("the queue's books cannot be read: %w", err)
	}
	return found, q.FailedTotal, nil
}
