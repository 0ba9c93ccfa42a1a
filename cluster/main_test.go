package cluster

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
)

const ms = time.Millisecond

var background = context.Background()

func TestMain(m *testing.M) {
	if work := workers[os.Getenv(envWork)]; work != nil {
		os.Exit(work()) // this is a process that a test has started
	}
	goleak.VerifyTestMain(m)
}

var names atomic.Int64

// name returns a Name that no other test uses.
func name() string { return fmt.Sprintf("test %d", names.Add(1)) }

func dial(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// made is New, with a Name of its own and closed with the test.
func made(t testing.TB, client redis.UniversalClient, c Config) *Limiter {
	t.Helper()
	if c.Name == "" {
		c.Name = name()
	}
	l, err := New(client, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

func tried(t testing.TB, l sluice.Limiter, n int) sluice.Decision {
	t.Helper()
	d, err := l.Try(background, n)
	require.NoError(t, err)
	return d
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(ms) {
		if time.Now().After(end) {
			require.Fail(t, "not within 10s: "+what)
		}
	}
}
