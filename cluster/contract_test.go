package cluster

import (
	"errors"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
	"github.com/fadf4e53/sluice/sluicetest"
	"github.com/fadf4e53/sluice/waiter"
)

// The suite that every kind of Limiter goes through, on a real server and on the embedded one.
func TestContract(t *testing.T) {
	for kind, addr := range map[string]string{
		"redis-server": redistest.StartServer(t).Addr,
		"embedded":     miniredis.RunT(t).Addr(),
	} {
		t.Run(kind, func(t *testing.T) {
			client := dial(t, addr)
			sluicetest.Run(t, sluicetest.Kind{RealTime: true, New: func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
				return made(t, client, Config{Rate: rate, Burst: burst, Horizon: longest})
			}})
		})
	}
}

// What FailLocal limits by while Redis is out keeps the contract as well. It starts empty; here it is given its burst.
func TestContractDuringAnOutage(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1, PoolSize: 10_000}) // after as many errors the pool would begin to dial by itself
	t.Cleanup(func() { _ = client.Close() })
	unpromised := map[string]string{}
	for _, name := range []string{
		"n/0 costs nothing and returns at once", "pause/all ways to ask are told how long", "pause/a shorter one never shortens a longer one",
		"pause/a longer one prolongs it", "pause/0 does nothing", "pause/a turn that had come stands", "pause/one too long for the clock is for ever",
	} {
		unpromised[name] = "Pause holds this process and returns ErrOutage: the others do not know of it"
	}
	sluicetest.Run(t, sluicetest.Kind{RealTime: true, Unpromised: unpromised, New: func(t testing.TB, rate sluice.Rate, burst int) sluice.Limiter {
		l := made(t, client, Config{Rate: rate, Burst: burst, Horizon: longest, Outage: FailLocal, Processes: 1})
		full, err := waiter.New(waiter.Config{Rate: rate, Burst: burst, MaxWait: longest, AllowOversize: true})
		require.NoError(t, err)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.downLocked(errors.New("no network"))
		l.outage.local.limiter = full
		return l
	}})
}
