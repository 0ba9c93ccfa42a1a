package cluster

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

func stop(t testing.TB, s *redistest.Server) { require.NoError(t, s.Signal(syscall.SIGSTOP)) }
func cont(t testing.TB, s *redistest.Server) { require.NoError(t, s.Signal(syscall.SIGCONT)) }

// latest waits for all and returns the longest time past its limit that any took.
type latest struct {
	mu   sync.Mutex
	over time.Duration
	all  sync.WaitGroup
}

func (l *latest) run(limit time.Duration, f func()) {
	l.all.Go(func() {
		began := time.Now()
		f()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = max(l.over, time.Since(began)-limit)
	})
}

// With go-redis alone a ctx of 100 ms took 3 s, a cancel was not seen at all, and the call was charged twice.
func TestAStalledRedisHoldsNobodyBeyondHisContext(t *testing.T) {
	server := redistest.StartServer(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: 10 * time.Second})
	t.Cleanup(func() { _ = client.Close() })
	// The Timeout is longer than the stall: nothing but ctx ends a call.
	l := made(t, client, Config{Rate: sluice.PerSecond(100), Burst: 10, Timeout: 8 * time.Second})
	require.NoError(t, l.Wait(background, 1))
	used := client.PoolStats().TotalConns

	stop(t, server)
	var late latest
	for i := range 40 {
		d := time.Duration(50+i*5) * ms
		late.run(d, func() {
			ctx, cancel := context.WithTimeout(background, d)
			defer cancel()
			require.ErrorIs(t, l.Wait(ctx, 1), context.DeadlineExceeded)
		})
		late.run(d, func() {
			ctx, cancel := context.WithCancel(background)
			defer time.AfterFunc(d, cancel).Stop()
			_, err := l.Try(ctx, 1)
			require.ErrorIs(t, err, context.Canceled)
			_, err = l.Reserve(ctx, 1)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, l.Pause(ctx, time.Hour), context.Canceled)
		})
	}
	late.all.Wait()
	t.Logf("80 callers, the latest %v after its ctx", late.over)
	require.Less(t, late.over, 5*ms+slack(t))
	require.LessOrEqual(t, client.PoolStats().TotalConns, used+1, "one trip is under way, whoever calls")
	require.Zero(t, l.Stats().Waiting)

	time.Sleep(4*time.Second - 300*ms)
	began, trips := time.Now(), l.Health().Trips
	cont(t, server)
	// What the trip under way took for callers that have left is owned, and given to the next who come, or given back.
	eventually(t, "the late answer", func() bool { return l.Health().Trips > trips })
	for range 30 {
		require.NoError(t, l.Wait(background, 1))
	}
	took := time.Since(began)
	t.Logf("30 units at 100/s, burst 10, %v after the stall", took)
	require.Less(t, took, time.Second, "the rate is whole again")
	require.EqualValues(t, 31, l.Stats().Units)
	eventually(t, "at rest: nothing stays charged", func() bool { return tried(t, l, 0).ResetAfter == 0 })
	require.Zero(t, l.Health().Outages)
}

// slack is what this machine itself is late now: callers are many, processors few.
func slack(t testing.TB) time.Duration {
	t.Helper()
	var late latest
	for range 80 {
		late.run(50*ms, func() {
			ctx, cancel := context.WithTimeout(background, 50*ms)
			defer cancel()
			<-ctx.Done()
		})
	}
	late.all.Wait()
	return late.over
}

// The end of ctx and the answer of Redis may come in the same instant.
func TestACtxThatEndsWithTheAnswer(t *testing.T) {
	l := made(t, dial(t, redistest.Start(t)), Config{Rate: sluice.PerSecond(1_000_000), Burst: 1_000_000})
	var granted, left int
	for i := range 4000 {
		ctx, cancel := context.WithCancel(background)
		timer := time.AfterFunc(time.Duration(i%400)*time.Microsecond, cancel)
		r, err := l.Reserve(ctx, 1)
		if err == nil {
			require.NoError(t, r.Wait(background), "what Reserve gave is kept, whatever has become of its ctx")
			granted++
		} else {
			require.ErrorIs(t, err, context.Canceled)
			left++
		}
		timer.Stop()
		cancel()
	}
	t.Logf("%d granted, %d left", granted, left)
	require.NotZero(t, granted)
	require.NotZero(t, left)
	s := l.Stats()
	require.EqualValues(t, granted, s.Granted)
	require.EqualValues(t, granted, s.Units)
	require.Zero(t, s.Waiting)
}

// A call that has timed out may have been carried out. go-redis repeats it, and charges twice.
func TestNothingIsChargedTwice(t *testing.T) {
	server := redistest.StartServer(t)
	deaf := &deaf{t: t, to: server.Addr}
	client := redis.NewClient(&redis.Options{Dialer: deaf.dial, ReadTimeout: 100 * ms, MaxRetries: 5})
	t.Cleanup(func() { _ = client.Close() })
	c := Config{Name: name(), Rate: sluice.Every(time.Hour), Burst: 100, Timeout: 50 * ms}
	l := made(t, client, c)
	require.True(t, tried(t, l, 10).Allowed)

	deaf.on.Store(true)
	_, err := l.Try(background, 7)
	require.ErrorIs(t, err, ErrOutage)
	time.Sleep(time.Second) // probes go on, and take nothing
	deaf.on.Store(false)
	eventually(t, "Redis is back", func() bool { return !l.Health().Down })
	require.Equal(t, 83, tried(t, made(t, dial(t, server.Addr), c), 0).Remaining, "the answer is lost, and the units once")
}

// A deaf network brings what the script is asked to Redis, and never the answer.
type deaf struct {
	t  *testing.T
	to string
	on atomic.Bool
}

func (d *deaf) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, d.to)
	return &deafConn{Conn: conn, deaf: d}, err
}

type deafConn struct {
	net.Conn
	deaf *deaf
	lost atomic.Bool
}

func (c *deafConn) Write(b []byte) (int, error) {
	if c.deaf.on.Load() && bytes.Contains(b, []byte("evalsha")) {
		c.lost.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for c.lost.Load() && err == nil {
		n, err = c.Conn.Read(b) // until the deadline
	}
	return n, err
}

// The answer that comes too late brings units that nobody waits for any more.
func TestALateAnswersUnitsAreGivenBack(t *testing.T) {
	server := redistest.StartServer(t)
	client := dial(t, server.Addr)
	l := made(t, client, Config{Rate: sluice.Every(time.Hour), Burst: 100, Timeout: 50 * ms})
	require.True(t, tried(t, l, 10).Allowed)
	stop(t, server)
	began := time.Now()
	require.ErrorIs(t, l.Wait(background, 7), ErrOutage)
	require.Less(t, time.Since(began), 2*time.Second)
	for range 1000 { // not every call waits for Redis
		require.ErrorIs(t, l.Wait(background, 1), ErrOutage)
	}
	require.Less(t, time.Since(began), 2*time.Second)
	cont(t, server)
	eventually(t, "Redis is back", func() bool { return !l.Health().Down })
	require.Equal(t, 90, tried(t, l, 0).Remaining)
	require.EqualValues(t, 10, l.Stats().Units)
	require.EqualValues(t, 1, l.Health().Outages)
	require.EqualValues(t, 1001, l.Health().Failed)
}

// Turns that a process owns need no Redis.
func TestWhoStandsInLineGoesDuringAStall(t *testing.T) {
	server := redistest.StartServer(t)
	l := made(t, dial(t, server.Addr), Config{Rate: sluice.PerSecond(50), Burst: 1, Timeout: 50 * ms})
	var all []sluice.Reservation
	for range 20 {
		r, err := l.Reserve(background, 1)
		require.NoError(t, err)
		all = append(all, r)
	}
	stop(t, server)
	defer cont(t, server)
	for _, r := range all {
		require.NoError(t, r.Wait(background))
	}
}

func TestCloseDuringAStallWakesAll(t *testing.T) {
	server := redistest.StartServer(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: 500 * ms})
	t.Cleanup(func() { _ = client.Close() })
	l := made(t, client, Config{Rate: sluice.Every(time.Hour), Burst: 1, Horizon: 10 * time.Hour, Timeout: 200 * ms})
	require.NoError(t, l.Wait(background, 1))
	r, err := l.Reserve(background, 1)
	require.NoError(t, err)
	var all sync.WaitGroup
	errs := make(chan error, 10)
	for range 5 {
		all.Go(func() { errs <- r.Wait(background) })
	}
	eventually(t, "in line", func() bool { return l.Stats().Waiting == 1 })
	stop(t, server)
	for range 5 {
		all.Go(func() { errs <- l.Wait(background, 1) })
	}
	eventually(t, "asking", func() bool { return l.Stats().Waiting == 6 })
	require.NoError(t, l.Close())
	all.Wait()
	cont(t, server)
	for range 10 {
		err := <-errs
		var no *sluice.Refusal
		require.True(t, errors.As(err, &no) && errors.Is(err, sluice.ErrClosed), "%v", err)
	}
	require.EqualValues(t, 6, l.Stats().Refused, "5 calls and a Reservation")
	require.NoError(t, l.Close(), "again")
	require.ErrorIs(t, l.Wait(background, 1), sluice.ErrClosed)
	require.ErrorIs(t, l.Pause(background, time.Second), sluice.ErrClosed)
	require.Equal(t, sluice.Never, r.Delay())
}
