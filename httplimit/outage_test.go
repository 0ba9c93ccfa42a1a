package httplimit_test

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/httplimit"
)

// Clients that are told 429 when Redis is out slow down, and nobody looks at Redis.
func TestWithoutRedisNobodyIsToldThatHeIsOverTheLimit(t *testing.T) {
	quiet(t)
	for _, hold := range []time.Duration{0, 100 * ms} {
		server := miniredis.RunT(t)
		client := redis.NewClient(&redis.Options{Addr: server.Addr()})
		lim, err := cluster.New(client, cluster.Config{Name: "api", Rate: sluice.Every(time.Minute), Burst: 1})
		require.NoError(t, err)
		h := behind(t, httplimit.Config{Limiter: lim, MaxWait: hold})
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
		no := get(t.Context(), h)
		require.Equal(t, 429, no.StatusCode)
		require.Equal(t, "60", no.Header.Get("Retry-After"))
		server.Close()
		for range 3 {
			require.Equal(t, 503, get(t.Context(), h).StatusCode)
		}
		require.EqualValues(t, 1, h.n.Load())
		require.NoError(t, lim.Close())
		require.NoError(t, client.Close())
	}
}
