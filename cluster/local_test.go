package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// out makes a limiter whose Redis is out, and waits until so many units could go by its policy.
func out(t *testing.T, c Config, units int) *Limiter {
	t.Helper()
	server := redistest.StartServer(t)
	l := made(t, dial(t, server.Addr), c)
	server.Stop()
	eventually(t, "the policy has units", func() bool {
		d, err := l.Try(background, 0)
		return err == nil && d.Remaining >= units && l.Health().Down
	})
	return l
}

// A Reservation that the policy made could not be cancelled: what All took while another limit refused was lost.
func TestAReservationMadeDuringAnOutageIsGivenBack(t *testing.T) {
	for _, policy := range []Outage{FailLocal, FailOpen} {
		l := out(t, Config{Rate: sluice.PerSecond(100), Burst: 10, Outage: policy, Processes: 1}, 10)
		full := tried(t, l, 0)
		for range 5 {
			r, d, err := l.TryReserve(background, 10)
			require.NoError(t, err)
			require.True(t, d.Allowed, "policy %v", policy)
			require.Zero(t, r.Delay())
			require.NoError(t, r.Wait(background))
			r.Cancel()
			r.Cancel()
			require.Equal(t, sluice.Never, r.Delay())
			require.ErrorIs(t, r.Wait(background), sluice.ErrInvalid)
			require.Equal(t, full.Remaining, tried(t, l, 0).Remaining)
			require.Zero(t, l.Stats().Units)
		}
		require.EqualValues(t, 5, l.Stats().Granted)

		never := made(t, l.client, Config{Rate: sluice.Every(time.Hour), Burst: 1, Outage: FailLocal, Processes: 1})
		d, err := sluice.All(l, never).Try(background, 1)
		require.NoError(t, err)
		require.False(t, d.Allowed)
		require.Equal(t, full.Remaining, tried(t, l, 0).Remaining)
	}
}

// What a Reservation took during an outage was not counted, and not charged when Redis was back.
func TestAReservationMadeDuringAnOutageIsCounted(t *testing.T) {
	l := out(t, Config{Rate: sluice.PerSecond(10), Burst: 2, Outage: FailLocal, Processes: 1}, 2)
	now, err := l.Reserve(background, 2)
	require.NoError(t, err)
	require.EqualValues(t, 1, l.Stats().Granted, "its turn has come, and nobody need ask again")
	next, err := l.Reserve(background, 1)
	require.NoError(t, err)
	require.Positive(t, next.Delay())
	require.NoError(t, next.Wait(background))
	left, err := l.Reserve(background, 1)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	cancel()
	require.ErrorIs(t, left.Wait(ctx), context.Canceled)
	far, err := l.Reserve(background, 2)
	require.NoError(t, err)
	short, cancel := context.WithTimeout(background, ms)
	defer cancel()
	require.ErrorIs(t, far.Wait(short), sluice.ErrDeadline)
	gone, err := l.Reserve(background, 1)
	require.NoError(t, err)
	gone.Cancel()

	s := l.Stats()
	require.EqualValues(t, 2, s.Granted)
	require.EqualValues(t, 3, s.Units)
	require.EqualValues(t, 2, s.Canceled)
	require.EqualValues(t, 1, s.Refused)
	require.EqualValues(t, 3, l.Health().Local)
	require.Zero(t, now.Delay())
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Equal(t, 2, l.outage.local.units, "to be charged: the burst at most")
}

// Close wakes all who wait, also who waits for a turn of the policy's.
func TestCloseWakesWhoWaitsLocally(t *testing.T) {
	l := out(t, Config{Rate: sluice.Every(20 * time.Second), Burst: 1, Outage: FailLocal, Processes: 1}, 0)
	r, err := l.Reserve(background, 1)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- r.Wait(background) }()
	go func() { ended <- l.Wait(background, 1) }()
	time.Sleep(20 * ms)
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-ended, sluice.ErrClosed)
	require.ErrorIs(t, <-ended, sluice.ErrClosed)
}

func TestWhoWaitsLocallyIsCounted(t *testing.T) {
	l := out(t, Config{Rate: sluice.Every(20 * time.Second), Burst: 1, Outage: FailLocal, Processes: 1}, 0)
	ctx, cancel := context.WithCancel(background)
	ended := make(chan error)
	for range 3 {
		go func() { ended <- l.Wait(ctx, 1) }()
	}
	eventually(t, "three wait", func() bool { return l.Stats().Waiting == 3 })
	cancel()
	for range 3 {
		require.ErrorIs(t, <-ended, context.Canceled)
	}
	require.Zero(t, l.Stats().Waiting)
}
