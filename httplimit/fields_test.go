package httplimit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

func TestAPolicyIsTrue(t *testing.T) {
	for _, s := range []struct {
		rate  sluice.Rate
		burst int
		q, w  int64
	}{
		{sluice.Per(100, time.Minute), 100, 100, 60},
		{sluice.Per(100, time.Minute), 10, 10, 6},
		{sluice.PerSecond(50), 10, 50, 1},                                          // no window is shorter than a second
		{sluice.PerSecond(1), 10, 10, 10},                                          // all ten can go at once
		{sluice.Every(2 * time.Second), 1, 1, 2},                                   //
		{sluice.PerSecond(3), 1, 3, 1},                                             // a third of a second is not lost
		{sluice.Every(1500 * time.Millisecond), 1, 2, 3},                           // the first window that holds whole units
		{sluice.Every(1010 * time.Millisecond), 1, 100, 101},                       //
		{sluice.Per(2000, 24*time.Hour), 3, 5, 216},                                //
		{sluice.Every(365 * 24 * time.Hour), 2, 2, 2 * 365 * 24 * 3600},            //
		{sluice.Per(1, 1_000_000_007), 1, 1, 2},                                    // no window of up to an hour does: rounded down
		{sluice.PerSecond(4_000_000_000), 1 << 60, 999_999_999_999_999, 288230377}, // as large as an Integer can be
		{sluice.Every(sluice.Never), 1 << 60, 0, 9223372036},                       // as long as a Duration can be
	} {
		q, w, ok := policy(s.rate, s.burst)
		require.True(t, ok)
		require.Equal(t, []int64{s.q, s.w}, []int64{q, w}, "%v, burst %d", s.rate, s.burst)
		require.LessOrEqual(t, q, s.rate.UnitsIn(time.Duration(w)*time.Second), "never more than the rate")
	}
	for _, r := range []sluice.Rate{{}, sluice.Unlimited} {
		_, _, ok := policy(r, 1)
		require.False(t, ok)
	}
	_, _, ok := policy(sluice.PerSecond(1), 0)
	require.False(t, ok)
}

func TestSecondsAreRoundedUpAndNeverNone(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		-1: 1, 0: 1, 1: 1, time.Second: 1, time.Second + 1: 2, sluice.Never: 9223372037,
	} {
		require.Equal(t, want, secondsUp(d), d)
	}
}
