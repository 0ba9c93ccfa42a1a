package cluster

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// pair makes two Limiters that share one limit, as two processes do.
func pair(t testing.TB, client redis.UniversalClient, c Config) (*Limiter, *Limiter) {
	c.Name = name()
	return made(t, client, c), made(t, client, c)
}

func reserved(t testing.TB, l *Limiter, n int) sluice.Reservation {
	t.Helper()
	r, err := l.Reserve(background, n)
	require.NoError(t, err)
	return r
}

// near checks a duration in hours, of which nothing passes while a test runs.
func near(t testing.TB, hours int, got time.Duration, what string) {
	t.Helper()
	want := time.Duration(hours) * time.Hour
	require.LessOrEqual(t, got, want, what)
	require.Greater(t, got, want-time.Minute, what)
}

// A slot that is given back in the middle must not be given out twice, and one that is only given back at the tail was
// lost in 99 of 100 cases. It belongs to the process: the next in its line takes it, and then the next who comes.
func TestALeaversTurnGoesToTheNextOfItsProcess(t *testing.T) {
	client := dial(t, redistest.Start(t))
	ours, theirs := pair(t, client, Config{Rate: sluice.Every(time.Hour), Burst: 1, Horizon: 100 * time.Hour})
	require.NoError(t, ours.Wait(background, 1))
	first, second := reserved(t, ours, 1), reserved(t, ours, 1) // 1h, 2h
	other := reserved(t, theirs, 1)                             // 3h
	third := reserved(t, ours, 1)                               // 4h
	last := reserved(t, theirs, 1)                              // 5h
	near(t, 4, third.Delay(), "third")

	first.Cancel()
	near(t, 1, second.Delay(), "moves up")
	near(t, 2, third.Delay(), "moves up, over the other process")
	near(t, 3, other.Delay(), "another process's stays")
	eventually(t, "its end cannot go back: somebody has come after it", func() bool {
		ours.mu.Lock()
		defer ours.mu.Unlock()
		return ours.trip == nil
	})
	trips := ours.Health().Trips
	spare := reserved(t, ours, 1)
	near(t, 4, spare.Delay(), "the spare turn serves the next who comes")
	require.Equal(t, trips, ours.Health().Trips, "without asking Redis")

	before := theirs.Health().Trips
	last.Cancel() // the tail goes back, and serves anybody
	eventually(t, "on its way back, before anybody else can come after it", func() bool {
		theirs.mu.Lock()
		defer theirs.mu.Unlock()
		return theirs.trip == nil && theirs.outage.Trips > before
	})
	eventually(t, "given back", func() bool { d := reserved(t, ours, 1); defer d.Cancel(); return d.Delay() < 5*time.Hour })
	near(t, 5, reserved(t, ours, 1).Delay(), "the tail")
	require.Equal(t, 4, ours.Stats().Waiting)
}

func TestBeyondTheHorizonIsErrMaxWaitAndTakesNothing(t *testing.T) {
	client := dial(t, redistest.Start(t))
	l := made(t, client, Config{Rate: sluice.PerSecond(10), Burst: 1, Horizon: 500 * ms})
	require.NoError(t, l.Wait(background, 1))
	refused, kept := 0, 0
	for range 50 {
		r, err := l.Reserve(background, 1)
		if err != nil {
			require.ErrorIs(t, err, sluice.ErrMaxWait)
			refused++
			continue
		}
		kept++
		require.LessOrEqual(t, r.Delay(), 500*ms)
	}
	require.GreaterOrEqual(t, kept, 4)
	require.LessOrEqual(t, kept, 8)
	require.EqualValues(t, refused, l.Stats().Refused)
	require.ErrorIs(t, l.Wait(background, 1), sluice.ErrMaxWait)
}

// Who comes together shares a trip, and is told what he would have been told alone.
func TestABatchIsItsCallsOneAfterTheOther(t *testing.T) {
	client := dial(t, redistest.Start(t))
	l := made(t, client, Config{Rate: sluice.Every(time.Hour), Burst: 10, Horizon: 1000 * time.Hour})
	hold := func(n int) *place { // asks, and does not fly
		p := newKept(wait, n)
		p.deadline = l.local() + int64(150*time.Minute)
		l.asking.push(p)
		return p
	}
	l.mu.Lock()
	l.trip = &trip{}
	a, b, c, d, e := hold(4), hold(8), hold(9), hold(6), newPlace(try, 1)
	l.asking.push(e)
	l.trip = nil
	l.flyLocked()
	l.mu.Unlock()
	for _, p := range []*place{a, b, c, d} {
		<-p.stood
	}
	<-e.wake
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(t, granted, a.state, "4 of 10")
	require.Equal(t, waiting, b.state, "8 more: 2 are to come")
	require.ErrorIs(t, c.err, sluice.ErrDeadline, "9 more would need 11h")
	require.ErrorIs(t, d.err, sluice.ErrDeadline, "6 more would need 8h")
	require.False(t, e.decision.Allowed)
	near(t, 3, e.decision.RetryAfter, "behind the 2 that are to come")
	require.LessOrEqual(t, l.outage.Trips, uint64(2))
}

func TestPauseHoldsEveryProcessAndKeepsTheLine(t *testing.T) {
	client := dial(t, redistest.Start(t))
	ours, theirs := pair(t, client, Config{Rate: sluice.PerSecond(50), Burst: 1})
	require.NoError(t, ours.Wait(background, 1))
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	for i := range 5 {
		r := reserved(t, ours, 1)
		all.Go(func() {
			if err := r.Wait(background); err != nil {
				t.Errorf("Wait: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, i)
		})
	}
	began := time.Now()
	require.NoError(t, ours.Pause(background, 400*ms))
	went := int(ours.Stats().Granted) // before it
	require.False(t, tried(t, theirs, 1).Allowed)
	require.NoError(t, theirs.Wait(background, 1))
	require.GreaterOrEqual(t, time.Since(began), 400*ms-ms)
	all.Wait()
	require.Equal(t, []int{0, 1, 2, 3, 4}, order)
	// Those five and the other process's one start 20 ms apart, behind the pause.
	require.GreaterOrEqual(t, time.Since(began), 400*ms+time.Duration(5-went)*20*ms-5*ms)
	require.Less(t, time.Since(began), 2*time.Second)
	require.EqualValues(t, 6, ours.Stats().Granted)
}

func TestAPauseEndsWithoutAnybodysHelp(t *testing.T) {
	client := dial(t, redistest.Start(t))
	ours, theirs := pair(t, client, Config{Rate: sluice.PerSecond(1000), Burst: 5})
	require.NoError(t, theirs.Pause(background, 100*ms))
	require.NoError(t, theirs.Pause(background, 10*ms), "shorter: changes nothing")
	d := tried(t, ours, 5)
	require.False(t, d.Allowed)
	require.Greater(t, d.RetryAfter, 10*ms)
	require.Zero(t, d.Remaining)
	require.NoError(t, ours.Wait(background, 5), "what gathered is there")
}

// Clients that are an hour off in either direction decide and wait alike: only differences of Redis' time are used.
func TestClocksThatDifferByAnHour(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, off := range []int{-3600, 0, 3600} {
		l := made(t, client, Config{Rate: sluice.PerSecond(100), Burst: 10})
		l.script = newScript(strings.Replace(source, "clock[1] * 1000000", "(clock[1] + "+strconv.Itoa(off)+") * 1000000", 1))
		began := time.Now()
		for range 10 {
			require.True(t, tried(t, l, 1).Allowed)
		}
		require.NoError(t, l.Wait(background, 10))
		took := time.Since(began)
		require.GreaterOrEqual(t, took, 100*ms, "off by %ds", off)
		require.Less(t, took, time.Second, "off by %ds", off)
		ttl := client.PTTL(background, l.key).Val()
		require.Less(t, ttl, 3*time.Second)
	}
}

// A Redis that is replaced by one whose clock is an hour behind, or ahead, in mid-run.
func TestAServerWithAnotherClockInMidRun(t *testing.T) {
	client := dial(t, redistest.Start(t))
	for _, off := range []int{-3600, 3600} {
		l := made(t, client, Config{Rate: sluice.PerSecond(100), Burst: 1, Horizon: 300 * ms})
		var all sync.WaitGroup
		wait := func() {
			all.Go(func() {
				if err := l.Wait(background, 1); err != nil {
					t.Errorf("Wait: %v", err)
				}
			})
		}
		for range 10 {
			wait()
		}
		eventually(t, "in line", func() bool { return l.Stats().Waiting < 10 })
		all.Wait()
		l.mu.Lock()
		l.script = newScript(strings.Replace(source, "clock[1] * 1000000", "(clock[1] + "+strconv.Itoa(off)+") * 1000000", 1))
		l.mu.Unlock()
		// At most the debt that anybody may have is waited for again.
		began := time.Now()
		eventually(t, "goes again", func() bool { return l.Wait(background, 1) == nil })
		require.Less(t, time.Since(began), 2*time.Second)
		for range 10 {
			wait()
		}
		all.Wait()
	}
}

// When Redis forgets, or a new version raises the rate, what it gives lies before the turns that this process owns: who
// came later went first, or slept to his deadline behind those in line.
func TestWhoComesAfterAFlushStandsBehindTheLine(t *testing.T) {
	client := dial(t, redistest.Start(t))
	n := name()
	forget := map[string]func(){
		"flush": func() { require.NoError(t, client.FlushAll(background).Err()) },
		"raise": func() {
			other := made(t, client, Config{Name: n, Rate: sluice.PerSecond(1000), Burst: 1})
			require.NoError(t, other.Wait(background, 1))
			time.Sleep(100 * ms)
		},
	}
	for what, forget := range forget {
		l := made(t, client, Config{Name: n, Rate: sluice.PerSecond(10), Burst: 1, Horizon: 20 * time.Second})
		var line []sluice.Reservation
		for range 50 {
			r, err := l.Reserve(background, 1)
			require.NoError(t, err)
			line = append(line, r)
		}
		forget()
		last := line[49].Delay()
		ctx, cancel := context.WithTimeout(background, 1500*ms)
		began := time.Now()
		err := l.Wait(ctx, 1)
		cancel()
		var no *sluice.Refusal
		require.ErrorAs(t, err, &no, what)
		require.ErrorIs(t, err, sluice.ErrDeadline, what)
		require.Less(t, time.Since(began), time.Second, "%s: at once", what)
		require.Less(t, line[49].Delay(), last, "%s: those in line have moved up", what)
		d := tried(t, l, 1)
		require.False(t, d.Allowed, "%s: Try overtakes nobody", what)
		require.Greater(t, d.RetryAfter, line[49].Delay()-time.Second, what)
		require.True(t, tried(t, l, 0).Allowed)
		require.NoError(t, line[0].Wait(background))
		for _, r := range line {
			r.Cancel()
		}
		require.Zero(t, l.Stats().Waiting)
		require.NoError(t, client.FlushAll(background).Err())
	}
}
