package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

var reasons = []error{
	sluice.ErrDeadline, sluice.ErrMaxWait, sluice.ErrFull, sluice.ErrTooLarge, sluice.ErrClosed, errors.New("one that a limiter adds"),
}

func TestRefusalIsItsReasonAndNoOther(t *testing.T) {
	for _, reason := range reasons {
		err := fmt.Errorf("sending mail: %w", &sluice.Refusal{Reason: reason, N: 3, RetryAfter: time.Second})
		for _, other := range reasons {
			require.Equal(t, reason == other, errors.Is(err, other), "%v is %v", reason, other)
		}
		require.NotErrorIs(t, err, sluice.ErrInvalid)
		require.NotErrorIs(t, err, context.Canceled)
		require.Equal(t, reason == sluice.ErrDeadline, errors.Is(err, context.DeadlineExceeded),
			"only a Refusal for ErrDeadline is context.DeadlineExceeded")

		var r *sluice.Refusal
		require.ErrorAs(t, err, &r)
		require.Equal(t, 3, r.N)
		require.Equal(t, time.Second, r.RetryAfter)
	}
}

func TestRefusalOfAWrappedDeadline(t *testing.T) {
	err := &sluice.Refusal{Reason: fmt.Errorf("in the east: %w", sluice.ErrDeadline)}
	require.ErrorIs(t, err, sluice.ErrDeadline)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRefusalText(t *testing.T) {
	r := &sluice.Refusal{Reason: sluice.ErrFull, N: 2, RetryAfter: 40 * time.Millisecond, Rate: sluice.PerSecond(50), Burst: 10}
	require.EqualError(t, r, "sluice: 2 refused by 50/s, burst 10: no room; retry after 40ms; nothing was taken")
	r.Reason, r.RetryAfter = sluice.ErrTooLarge, sluice.Never
	require.EqualError(t, r, "sluice: 2 refused by 50/s, burst 10: more than can ever be granted at once; nothing was taken")
	r = &sluice.Refusal{Reason: sluice.ErrClosed, N: 1, RetryAfter: sluice.Never}
	require.EqualError(t, r, "sluice: 1 refused: limiter closed; nothing was taken", "by whom is not known")
}

func TestEmptyRefusal(t *testing.T) {
	for _, r := range []*sluice.Refusal{nil, {}} {
		require.NotPanics(t, func() { _ = r.Error() })
		for _, reason := range reasons {
			require.NotErrorIs(t, r, reason)
		}
	}
}
