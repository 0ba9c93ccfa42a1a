package queue

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// keepEvery is how often a lane's deferred tasks are looked after.
	keepEvery = 500 * time.Millisecond

	// keepAhead is how near its time in Asynq's books a task is put off.
	keepAhead = 2 * time.Second

	// keepAtOnce bounds one command, and with it how long Redis does nothing else.
	keepAtOnce = 500
)

// keep puts deferred tasks off whose turn has slipped: a Backoff, an outage, another process that uses the same limit. Asynq
// would bring them at the time that was right when they were handed back, only for them to be handed back again: 16
// Redis commands where this is one for many. The first of them expects its turn in wait.
func (g *Gate) keep(ctx context.Context, l *lane, wait time.Duration) {
	now := time.Now()
	g.mu.Lock()
	if now.Sub(l.kept) < keepEvery || len(l.waits) == 0 {
		g.mu.Unlock()
		return
	}
	l.kept = now
	times := l.slippedLocked(now, now.Add(wait).Sub(l.waits[0].place))
	g.mu.Unlock()
	for queue, all := range times {
		for len(all) > 0 {
			some := all[:min(len(all), keepAtOnce)]
			if g.caller.later(ctx, queue, some) != nil {
				return // they come early, which costs a deferral
			}
			all = all[len(some):]
		}
	}
}

// slippedLocked gives those whose time is near a later one and returns it, for each queue.
func (l *lane) slippedLocked(now time.Time, slip time.Duration) map[string][]redis.Z {
	if slip < keepEvery {
		return nil
	}
	times := map[string][]redis.Z{}
	for _, p := range l.waits {
		if p.due.Sub(now) > keepAhead {
			continue
		}
		due := p.place.Add(slip)
		if due.Before(now) {
			due = now
		}
		if due = secondUp(due.Add(keepAhead + fallback)); !p.latest.IsZero() && p.latest.Before(due) {
			continue
		}
		p.due = due
		p.until = due.Add(keepParked)
		times[p.key.queue] = append(times[p.key.queue], redis.Z{Score: float64(due.Unix()), Member: p.key.id})
	}
	return times
}
