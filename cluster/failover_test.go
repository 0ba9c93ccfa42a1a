package cluster

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// One key and nothing beside it: a cluster needs no hash tag, and a name may hold braces.
func TestRedisCluster(t *testing.T) {
	server := redistest.StartServer(t, "--cluster-enabled", "yes")
	node := dial(t, server.Addr)
	require.NoError(t, node.ClusterAddSlotsRange(background, 0, 16383).Err())
	eventually(t, "the cluster is up", func() bool {
		return strings.Contains(node.ClusterInfo(background).Val(), "cluster_state:ok")
	})
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr}})
	t.Cleanup(func() { _ = client.Close() })
	for _, n := range []string{name(), name() + "{a}{", "ключ\x00\n"} {
		l := made(t, client, Config{Name: n, Rate: sluice.PerSecond(1000), Burst: 3})
		for range 20 {
			require.NoError(t, l.Wait(background, 1), "%q", n)
		}
		require.EqualValues(t, 20, l.Stats().Units)
	}
}

// A replica that has not heard of the last 90 units is promoted: they go once more, and no others.
func TestAPromotionLetsThroughWhatItHasNotHeardOf(t *testing.T) {
	old, promoted := redistest.StartServer(t, "--repl-diskless-sync-delay", "0"), redistest.StartServer(t)
	var addr atomic.Value
	addr.Store(old.Addr)
	client := redis.NewClient(&redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, addr.Load().(string))
	}})
	t.Cleanup(func() { _ = client.Close() })
	replica := dial(t, promoted.Addr)
	host, port, err := net.SplitHostPort(old.Addr)
	require.NoError(t, err)
	require.NoError(t, replica.Do(background, "replicaof", host, port).Err())

	l := made(t, client, Config{Rate: sluice.Every(time.Hour), Burst: 100, Horizon: 3 * time.Hour})
	require.True(t, tried(t, l, 10).Allowed)
	eventually(t, "replicated", func() bool { return replica.Exists(background, l.key).Val() == 1 })
	require.NoError(t, replica.Do(background, "replicaof", "no", "one").Err()) // from here on it hears nothing
	require.True(t, tried(t, l, 90).Allowed)
	held := reserved(t, l, 1)
	require.Positive(t, held.Delay())

	addr.Store(promoted.Addr)
	old.Stop()
	again, refused := 0, 0
	eventually(t, "limited again", func() bool {
		switch d, err := l.Try(background, 1); {
		case err == nil && d.Allowed:
			again, refused = again+1, 0
		case err == nil:
			refused++
		}
		return refused == 3 // once for who stands in line, who goes first
	})
	require.LessOrEqual(t, again, 90, "burst and what was not replicated: 190 of 100 in all")
	require.GreaterOrEqual(t, again, 85)
	require.Zero(t, held.Delay(), "who stands in line moves up")
	held.Cancel()
}
