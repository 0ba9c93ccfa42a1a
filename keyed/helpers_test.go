package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ms = time.Millisecond

// noContext is the nil that a caller can pass by mistake.
var noContext context.Context

type maker = func(string) (sluice.Limiter, error)

func newWaiter(t testing.TB, rate sluice.Rate, burst int) *waiter.Limiter {
	t.Helper()
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst})
	require.NoError(t, err)
	return l
}

// perSecond makes limiters of 1 unit a second, with this burst.
func perSecond(burst int) maker {
	return func(string) (sluice.Limiter, error) {
		return waiter.New(waiter.Config{Rate: sluice.PerSecond(1), Burst: burst})
	}
}

func newMap(t testing.TB, maxKeys int, evict keyed.Eviction, f maker) *keyed.Map[string] {
	t.Helper()
	m, err := keyed.New(keyed.Config[string]{New: f, MaxKeys: maxKeys, Evict: evict})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

func try(t testing.TB, m *keyed.Map[string], key string) sluice.Decision {
	t.Helper()
	d, err := m.Try(context.Background(), key, 1)
	if err != nil {
		t.Fatalf("Try(%s): %v", key, err)
	}
	return d
}

// take takes a unit of each key, which must be there.
func take(t testing.TB, m *keyed.Map[string], keys ...string) {
	t.Helper()
	for _, key := range keys {
		if d := try(t, m, key); !d.Allowed {
			t.Fatalf("Try(%s): %+v", key, d)
		}
	}
}

// refusedFor checks that a unit of key is refused, to come in d.
func refusedFor(t testing.TB, m *keyed.Map[string], key string, d time.Duration) {
	t.Helper()
	got := try(t, m, key)
	require.False(t, got.Allowed, "Try(%s)", key)
	require.Equal(t, d, got.RetryAfter, "Try(%s)", key)
}

func refusal(t testing.TB, err, reason error) *sluice.Refusal {
	t.Helper()
	require.ErrorIs(t, err, reason)
	var r *sluice.Refusal
	require.True(t, errors.As(err, &r), "%v", err)
	return r
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

// bubble runs f on a virtual clock.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// wait lets a goroutine call f, and returns when it sleeps or has come back. The channel gets what f returned.
func wait(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	synctest.Wait()
	return done
}
