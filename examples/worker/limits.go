package main

import (
	"context"
	"fmt"
	"io"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/metrics"
)

// limits are one limit of all jobs and one of each tenant, kept in Redis: they hold for all workers together.
//
// A job needs a turn of both, which is sluice.All. The queue's Gate knows a limiter by ==, and All makes a new one each
// time, so All is built once for each tenant, inside of the keyed.Map; its views are == for the same tenant, and route
// returns nothing else. (All(global, tenants.For(name)) in route would look the same and be a new limit for each job.)
//
// All counts a unit from its own turn in each limit. A job whose turn in one has come may still wait for the other,
// and start later, beside those whose turn is then: the downstream sees rate·w and at most one job more for each worker
// slot. Leave room for that, and for what the network delays, below the quota.
type limits struct {
	client  redis.UniversalClient
	global  *cluster.Limiter
	tenants *keyed.Map[string]
}

// burst 1 makes starts even. The burst that a downstream allows is not ours to spend: it is room for what comes late.
const burst = 1

func newLimits(c config, observe *metrics.Collector) (*limits, error) {
	client, ok := c.redis.MakeRedisClient().(redis.UniversalClient)
	if !ok {
		return nil, fmt.Errorf("no limits in a Redis of type %T", c.redis)
	}
	global, err := cluster.New(client, cluster.Config{Name: "worker:global", Rate: c.rate, Burst: burst})
	if err != nil {
		return nil, err
	}
	observe.Redis("global", func() metrics.RedisHealth { return metrics.RedisHealth(global.Health()) })

	tenants, err := keyed.New(keyed.Config[string]{
		MaxKeys: 10_000,
		// Elsewhere Oldest lets a tenant that is dropped off what it owes. Here that is in Redis.
		Evict: keyed.Oldest,
		New: func(tenant string) (sluice.Limiter, error) {
			own, err := cluster.New(client, cluster.Config{Name: "worker:tenant:" + tenant, Rate: c.rateOf(tenant), Burst: burst})
			if err != nil {
				return nil, err
			}
			// The Map closes what it drops: the tenant's own limit, and not the global one, which All leaves alone.
			both := struct {
				sluice.Limiter
				io.Closer
			}{sluice.All(global, own), own}
			return observe.Limiter(series(c, tenant), both), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &limits{client, global, tenants}, nil
}

// series is a tenant's name in Prometheus: those of the configuration have one each. Tenants come and go, series stay.
func series(c config, tenant string) string {
	if _, ok := c.tenants[tenant]; ok {
		return "tenant:" + tenant
	}
	return "tenants:other"
}

// tenantHeader is where a task says whose it is. Not in the payload: the Gate asks before the job is read.
const tenantHeader = "tenant"

func (l *limits) route(_ context.Context, task *asynq.Task) sluice.Limiter {
	if tenant := task.Headers()[tenantHeader]; tenant != "" {
		return l.tenants.For(tenant)
	}
	return l.global
}

func (l *limits) close() {
	// Errors are of no use to anybody here: what is not given back passes by itself.
	_ = l.tenants.Close()
	_ = l.global.Close()
	_ = l.client.Close()
}
