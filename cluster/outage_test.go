package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

func TestFailClosedSaysOutageAndNeverLimited(t *testing.T) {
	server := redistest.StartServer(t)
	l := made(t, dial(t, server.Addr), Config{Rate: sluice.PerSecond(10), Burst: 5})
	require.NoError(t, l.Wait(background, 1))
	server.Stop()
	check := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, ErrOutage)
		var no *sluice.Refusal
		require.False(t, errors.As(err, &no), "an outage is no refusal: %v", err)
		require.NotEqual(t, ErrOutage.Error(), err.Error(), "the cause must be told")
	}
	began := time.Now()
	for range 100 {
		check(l.Wait(background, 1))
		d, err := l.Try(background, 1)
		check(err)
		require.False(t, d.Allowed)
		_, err = l.Reserve(background, 1)
		check(err)
		check(l.Pause(background, time.Second))
	}
	require.Less(t, time.Since(began), 3*time.Second, "400 calls must not wait for 400 dials")
	h := l.Health()
	require.True(t, h.Down)
	require.Error(t, h.Cause)
	require.EqualValues(t, 1, h.Outages)
	require.EqualValues(t, 400, h.Failed)
	require.Less(t, h.Trips, uint64(100))
	require.NoError(t, l.Wait(background, 0), "nothing is asked for")

	require.NoError(t, server.Restart())
	eventually(t, "back by itself, without a call", func() bool { return !l.Health().Down })
	require.NoError(t, l.Wait(background, 1), "the new server knows no script")
}

func TestFailOpenLetsEverythingGo(t *testing.T) {
	server := redistest.StartServer(t)
	l := made(t, dial(t, server.Addr), Config{Rate: sluice.Every(time.Hour), Burst: 1, Outage: FailOpen})
	server.Stop()
	for range 20 {
		require.NoError(t, l.Wait(background, 1))
		require.True(t, tried(t, l, 1).Allowed)
		r, err := l.Reserve(background, 1)
		require.NoError(t, err)
		require.Zero(t, r.Delay())
	}
	require.ErrorIs(t, l.Wait(background, 2), sluice.ErrTooLarge)
	require.ErrorIs(t, l.Pause(background, time.Second), ErrOutage, "nobody else can be told")
	require.EqualValues(t, 60, l.Health().Opened)
	require.NoError(t, server.Restart())
	eventually(t, "back", func() bool { return !l.Health().Down })
	require.NoError(t, l.Wait(background, 1))
	require.False(t, tried(t, l, 1).Allowed, "limited again")
}

// Fallbacks at the full rate in every process let through as many times the limit as there are processes.
func TestFailLocalKeepsItsShare(t *testing.T) {
	server := redistest.StartServer(t)
	l := made(t, dial(t, server.Addr), Config{Rate: sluice.PerSecond(400), Burst: 40, Outage: FailLocal, Processes: 4})
	server.Stop()
	began := time.Now()
	for range 50 {
		require.NoError(t, l.Wait(background, 1))
	}
	took := time.Since(began)
	require.GreaterOrEqual(t, took, 490*ms, "50 units at 400/s ÷ 4, starting empty")
	require.EqualValues(t, 50, l.Health().Local)
	require.NoError(t, l.Wait(background, 12), "more than the share of the burst, and less than the burst")
	ctx, cancel := context.WithTimeout(background, ms)
	defer cancel()
	require.ErrorIs(t, l.Wait(ctx, 40), sluice.ErrDeadline)
}

func TestWhatWentLocallyIsChargedWhenRedisIsBack(t *testing.T) {
	for units, remaining := range map[int]int{0: 40, 7: 33, 30: 30} { // the share of the burst is 10: more has been made up
		server := redistest.StartServer(t)
		l := made(t, dial(t, server.Addr), Config{Rate: sluice.Every(time.Hour), Burst: 40, Outage: FailLocal, Processes: 4})
		server.Stop()
		require.False(t, tried(t, l, 1).Allowed, "it starts empty")
		l.mu.Lock()
		l.outage.local.units = units
		l.mu.Unlock()
		require.NoError(t, server.Restart())
		eventually(t, "back", func() bool { return !l.Health().Down })
		require.Equal(t, remaining, tried(t, l, 0).Remaining)
	}
}

// Who waits in the fallback's line when Redis comes back asks Redis: else both would let the whole rate go.
func TestFailLocalsLineMovesToRedis(t *testing.T) {
	server := redistest.StartServer(t)
	l := made(t, dial(t, server.Addr), Config{Rate: sluice.PerSecond(1000), Burst: 10, Horizon: time.Hour, Outage: FailLocal, Processes: 100_000})
	require.NoError(t, l.Wait(background, 1))
	server.Stop()
	require.False(t, tried(t, l, 1).Allowed)
	var all sync.WaitGroup
	for range 5 { // at 1 per 100 s
		all.Go(func() {
			if err := l.Wait(background, 1); err != nil {
				t.Errorf("Wait: %v", err)
			}
		})
	}
	time.Sleep(50 * ms) // the outage itself
	require.NoError(t, server.Restart())
	all.Wait()
	require.Zero(t, l.Health().Local)
}

func TestAServerThatCannotDecideIsAnOutage(t *testing.T) {
	server := redistest.StartServer(t)
	other := redistest.StartServer(t)
	client := dial(t, server.Addr)
	set := func(args ...any) { require.NoError(t, client.Do(background, args...).Err()) }
	c := Config{Rate: sluice.PerSecond(1000), Burst: 10, Outage: FailOpen}

	for _, s := range []struct {
		prefix      string
		begin, over []any
	}{
		{"OOM", []any{"config", "set", "maxmemory", "1"}, []any{"config", "set", "maxmemory", "0"}},
		{"READONLY", []any{"replicaof", "127.0.0.1", other.Addr[len("127.0.0.1:"):]}, []any{"replicaof", "no", "one"}},
	} {
		closed := c
		closed.Outage = FailClosed
		l, open := made(t, client, closed), made(t, client, c)
		require.NoError(t, l.Wait(background, 1))
		set(s.begin...)
		var err error
		eventually(t, s.prefix, func() bool { err = l.Wait(background, 1); return err != nil && strings.Contains(err.Error(), s.prefix) })
		require.ErrorIs(t, err, ErrOutage)
		for range 30 {
			require.NoError(t, open.Wait(background, 1))
		}
		// A probe that only reads would be answered: up, down, and an empty fallback with each call.
		local := made(t, client, Config{Rate: sluice.PerSecond(100), Burst: 10, Outage: FailLocal, Processes: 1})
		for range 40 {
			ctx, cancel := context.WithTimeout(background, time.Second)
			require.NoError(t, local.Wait(ctx, 1), s.prefix)
			cancel()
		}
		require.True(t, local.Health().Down)
		require.EqualValues(t, 1, local.Health().Outages, s.prefix)
		set(s.over...)
		eventually(t, "back", func() bool { return l.Wait(background, 1) == nil })
	}

}

// No policy helps against these: it would let everything through for ever, or nothing.
func TestAMistakeIsNoOutage(t *testing.T) {
	client := dial(t, redistest.StartServer(t).Addr)
	c := Config{Rate: sluice.PerSecond(1000), Burst: 10, Outage: FailOpen}
	mistake := func(l *Limiter, word string) {
		t.Helper()
		for range 3 {
			err := l.Wait(background, 1)
			require.ErrorContains(t, err, word) // not its first word before Redis 7
			require.NotErrorIs(t, err, ErrOutage)
			_, err = l.Try(background, 1)
			require.ErrorContains(t, err, word)
		}
		require.Zero(t, l.Health().Outages)
		require.Zero(t, l.Stats().Units)
	}
	list, text := c, c
	list.Name, text.Name = name(), name()
	require.NoError(t, client.LPush(background, "sluice:"+list.Name, 1).Err())
	mistake(made(t, client, list), "WRONGTYPE")
	require.NoError(t, client.Set(background, "sluice:"+text.Name, "17", 0).Err())
	mistake(made(t, client, text), "SLUICE")
	broken := made(t, client, c)
	broken.script = newScript("return nil + 1")
	err := broken.Wait(background, 1)
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrOutage)
	require.Contains(t, err.Error(), "nothing was taken")
	require.NoError(t, client.Do(background, "acl", "setuser", "nobody", "on", ">pw", "+ping", "~*").Err())
	denied := redis.NewClient(&redis.Options{Addr: client.Options().Addr, Username: "nobody", Password: "pw"})
	defer func() { _ = denied.Close() }()
	mistake(made(t, denied, c), "NOPERM")
	require.True(t, isOutage(errors.New("dial tcp: connection refused")))
	require.False(t, isOutage(crossSlot{}))
}

type crossSlot struct{}

func (crossSlot) Error() string { return "CROSSSLOT Keys in request don't hash to the same slot" }
func (crossSlot) RedisError()   {}

func TestScriptFlushInMidRunIsNotSeen(t *testing.T) {
	client := dial(t, redistest.StartServer(t).Addr)
	l := made(t, client, Config{Rate: sluice.PerSecond(100_000), Burst: 1000})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if err := l.Wait(background, 1); err != nil {
					t.Errorf("Wait: %v", err)
				}
			}
		})
	}
	for range 20 {
		require.NoError(t, client.ScriptFlush(background).Err())
	}
	all.Wait()
	require.EqualValues(t, 800, l.Stats().Units)
}

// What was answered by a mistake during an outage ended the probes: with FailOpen there was no limit from then on.
func TestAMistakeEndsAnOutage(t *testing.T) {
	server := redistest.StartServer(t)
	client := dial(t, server.Addr)
	l := made(t, client, Config{Rate: sluice.PerSecond(1000), Burst: 10, Outage: FailOpen, Timeout: 50 * ms})
	require.NoError(t, client.Set(background, l.key, "somebody else's", 0).Err())
	stop(t, server)
	require.True(t, tried(t, l, 1).Allowed, "by the policy")
	require.True(t, l.Health().Down)
	cont(t, server)
	eventually(t, "the late answer, which is a mistake's", func() bool { return !l.Health().Down })
	_, err := l.Try(background, 1)
	require.ErrorContains(t, err, "holds something else")
	require.NotErrorIs(t, err, ErrOutage)
	require.NoError(t, client.Del(background, l.key).Err())
	require.Equal(t, 9, tried(t, l, 1).Remaining)
}

// What FailLocal has let go is charged by a trip that goes before all others. Answered by a mistake it went again and again,
// and nobody else did.
func TestAChargeThatIsAnsweredByAMistakeHoldsNobodyUp(t *testing.T) {
	client := dial(t, redistest.Start(t))
	l := made(t, client, Config{Rate: sluice.Every(time.Hour), Burst: 10, Outage: FailLocal, Processes: 1})
	require.NoError(t, client.Set(background, l.key, "somebody else's", 0).Err())
	l.mu.Lock()
	l.outage.debt = 3
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(background, 5*time.Second)
	defer cancel()
	for range 3 {
		require.ErrorContains(t, l.Wait(ctx, 1), "holds something else")
	}
	time.Sleep(20 * ms)
	require.LessOrEqual(t, l.Health().Trips, uint64(6))
	require.NoError(t, client.Del(background, l.key).Err())
	require.NoError(t, l.Wait(ctx, 1))
	require.Equal(t, 6, tried(t, l, 0).Remaining, "3 of the outage, and 1")

	// What goes by the policy while a charge is under way is not forgotten when that fails.
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outage.debt = 4
	l.failedLocked(&trip{debt: 3}, errors.New("the network"))
	require.Equal(t, 7, l.outage.debt)
}
