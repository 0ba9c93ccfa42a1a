package cluster

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

func TestBadConfigNamesFieldValueAndRule(t *testing.T) {
	client := dial(t, "127.0.0.1:1") // New asks nothing
	good := Config{Name: "n", Rate: sluice.PerSecond(1), Burst: 1}
	_, err := New(client, good)
	require.NoError(t, err)
	for want, change := range map[string]func(*Config){
		`Config.Name is "": must not be empty`:                       func(c *Config) { c.Name = "" },
		`(513 bytes): must be at most 512 bytes`:                     func(c *Config) { c.Name = strings.Repeat("x", 513) },
		`Config.Rate is 0/s: must be at least 1 unit`:                func(c *Config) { c.Rate = sluice.Rate{} },
		`Config.Rate is -3/s: must be at least 1 unit`:               func(c *Config) { c.Rate = sluice.PerSecond(-3) },
		`must be at most 2^52 units per any time`:                    func(c *Config) { c.Rate = sluice.Per(1<<53+1, time.Second) },
		`Config.Burst is 0: must be at least 1`:                      func(c *Config) { c.Burst = 0 },
		`Config.Burst is -1: must be at least 1`:                     func(c *Config) { c.Burst = -1 },
		`Config.Burst is 1152921504606846976: must flow within 71`:   func(c *Config) { c.Burst = 1 << 60 },
		`Config.Horizon is -1s: must be from 1ns`:                    func(c *Config) { c.Horizon = -time.Second },
		`must be from 1ns to 625499h56m53.6`:                         func(c *Config) { c.Horizon = sluice.Never },
		`Config.Timeout is -1ns: must be at least 1ns; 0 is 200ms`:   func(c *Config) { c.Timeout = -1 },
		`Config.Outage is Outage(7): must be FailClosed`:             func(c *Config) { c.Outage = 7 },
		`Config.Outage is Outage(-1): must be FailClosed`:            func(c *Config) { c.Outage = -1 },
		`Config.Processes is -2: must be at least 0`:                 func(c *Config) { c.Processes = -2 },
		`Config.Processes is 0: must be at least 1 with FailLocal`:   func(c *Config) { c.Outage = FailLocal },
		`Config.Processes is 9223372036854775807: must leave a shar`: func(c *Config) { c.Outage, c.Processes = FailLocal, 1<<63-1 },
	} {
		c := good
		change(&c)
		l, err := New(client, c)
		require.ErrorIs(t, err, sluice.ErrInvalid, want)
		require.ErrorContains(t, err, want)
		require.Nil(t, l)
	}
}

func TestBadClients(t *testing.T) {
	good := Config{Name: "n", Rate: sluice.PerSecond(1), Burst: 1}
	var none *redis.Client
	for _, client := range []redis.UniversalClient{nil, none, (*redis.ClusterClient)(nil), (*redis.Ring)(nil)} {
		_, err := New(client, good)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorContains(t, err, "client is nil")
	}
	single := redis.NewClient(&redis.Options{ReadTimeout: -1})
	many := redis.NewClusterClient(&redis.ClusterOptions{ReadTimeout: -1})
	for _, client := range []redis.UniversalClient{single, many} {
		_, err := New(client, good)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorContains(t, err, "ReadTimeout")
		require.NoError(t, client.Close())
	}
}

func TestALimiterThatNewDidNotMakeSaysSo(t *testing.T) {
	for _, l := range []*Limiter{nil, {}} {
		require.ErrorIs(t, l.Wait(background, 1), sluice.ErrInvalid)
		_, err := l.Try(background, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorContains(t, err, "nothing was taken")
		_, err = l.Reserve(background, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		_, _, err = l.TryReserve(background, 1)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorIs(t, l.Pause(background, time.Second), sluice.ErrInvalid)
		require.ErrorIs(t, l.Close(), sluice.ErrInvalid)
		require.Zero(t, l.Stats())
		require.Zero(t, l.Health())
	}
}

// A deadline that came over a wire, as Asynq's does, has no monotonic reading: measured by the wall clock since New it is
// off by whatever that clock was set.
func TestADeadlineThatKnowsOnlyTheWallClock(t *testing.T) {
	l := made(t, dial(t, redistest.Start(t)), Config{Rate: sluice.PerSecond(5), Burst: 1})
	setBack := time.Now().Round(0).Add(-time.Hour)
	now := func() time.Time { return setBack }
	require.InDelta(t, l.local()+int64(5*time.Second), l.instant(setBack.Add(5*time.Second), now), float64(time.Second))
	require.EqualValues(t, math.MaxInt64, l.instant(setBack.Add(math.MaxInt64), now))
	require.Negative(t, l.instant(setBack.Add(-math.MaxInt64), now))
	require.InDelta(t, l.local()+int64(5*time.Second), l.instant(time.Now().Add(5*time.Second), now), float64(time.Second))

	require.NoError(t, l.Wait(background, 1))
	ctx, cancel := context.WithDeadline(background, time.Now().Add(5*time.Second).Round(0))
	defer cancel()
	require.NoError(t, l.Wait(ctx, 1))
}

// Places are used again, and their channels belong to the synctest bubble in which they were made.
func TestBubblesDoNotShareAnything(t *testing.T) {
	for range 2 {
		synctest.Test(t, func(t *testing.T) {
			client := redis.NewClient(&redis.Options{
				Addr: "127.0.0.1:1", MaxRetries: -1,
				Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") },
			})
			defer client.Close()
			l := made(t, client, Config{Rate: sluice.PerSecond(5), Burst: 1, Outage: FailOpen})
			for range 3 {
				require.NoError(t, l.Wait(background, 1))
			}
			require.NoError(t, l.Close())
		})
	}
}
