package httplimit_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
)

func TestARequestIsHeldUpToMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := behind(t, httplimit.Config{Limiter: newWaiter(t, sluice.PerSecond(10), 1), MaxWait: 250 * ms})
		began := time.Now()
		var all sync.WaitGroup
		for i, s := range []struct {
			status int
			at     time.Duration
		}{{200, 0}, {200, 100 * ms}, {200, 200 * ms}, {429, 0}, {429, 0}} {
			all.Go(func() {
				require.Equal(t, s.status, get(t.Context(), h).StatusCode, i)
				require.Equal(t, s.at, time.Since(began), i)
			})
			synctest.Wait()
		}
		all.Wait()
	})
}

func TestAHeldRequestNeverOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newWaiter(t, sluice.PerSecond(1), 1)
		h := behind(t, httplimit.Config{Limiter: lim, MaxWait: time.Minute})
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
		soon, cancel := context.WithTimeout(t.Context(), 999*ms)
		defer cancel()
		began := time.Now()
		no := get(soon, h)
		require.Equal(t, 429, no.StatusCode)
		require.Equal(t, "1", no.Header.Get("Retry-After"))
		require.Zero(t, time.Since(began), "its turn would come too late: it is told at once")
		inTime, cancel := context.WithTimeout(t.Context(), time.Second+1)
		defer cancel()
		require.Equal(t, 200, get(inTime, h).StatusCode)
		require.Equal(t, time.Second, time.Since(began))
	})
}

func TestWhoGoesAwayGivesHisPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newWaiter(t, sluice.PerSecond(1), 1)
		h := behind(t, httplimit.Config{Limiter: lim, MaxWait: time.Minute})
		began := time.Now()
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
		leaving, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			require.NotEqual(t, 200, get(leaving, h).StatusCode, "nobody may take it for served")
			require.Equal(t, 300*ms, time.Since(began))
		})
		synctest.Wait()
		all.Go(func() {
			require.Equal(t, 200, get(t.Context(), h).StatusCode)
			require.Equal(t, time.Second, time.Since(began), "it has moved up")
		})
		time.Sleep(300 * ms)
		leave()
		all.Wait()
		require.EqualValues(t, 2, h.n.Load(), "the handler of the one that left is not called")
		require.EqualValues(t, 2, lim.Stats().Units)
		require.NotEqual(t, 200, get(leaving, h).StatusCode)
		require.EqualValues(t, 2, lim.Stats().Units, "whose client had gone before takes nothing")
	})
}

// A limiter may not notice that the context has ended in the instant of the turn.
func TestWhoGoesInTheInstantOfHisTurnIsNotServed(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	h := behind(t, httplimit.Config{Limiter: blind{leave: leave}, MaxWait: time.Minute})
	require.NotEqual(t, 200, get(ctx, h).StatusCode)
	require.Zero(t, h.n.Load())
}

type blind struct {
	sluice.Limiter
	leave func()
}

func (b blind) Wait(context.Context, int) error { b.leave(); return nil }

// A pause puts the turn off that a request was held for.
func TestWhoIsHeldInVainIsToldAtTheEndOfMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newWaiter(t, sluice.PerSecond(1), 1)
		h := behind(t, httplimit.Config{Limiter: lim, MaxWait: 1500 * ms})
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
		began := time.Now()
		time.AfterFunc(500*ms, func() { require.NoError(t, lim.Pause(t.Context(), 9*time.Second)) })
		no := get(t.Context(), h)
		require.Equal(t, 1500*ms, time.Since(began))
		require.Equal(t, 429, no.StatusCode)
		require.Equal(t, "8", no.Header.Get("Retry-After"), "the pause ends at 9.5 s")
		require.EqualValues(t, 1, h.n.Load())
		time.Sleep(8 * time.Second)
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
	})
}

// net/http ends the context of a request whose connection is closed.
func TestAClientThatHangsUpLeavesTheLine(t *testing.T) {
	lim := newWaiter(t, sluice.Every(time.Hour), 1)
	h := behind(t, httplimit.Config{Limiter: lim, MaxWait: 2 * time.Hour})
	server := httptest.NewServer(h)
	defer server.Close()
	got, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	require.NoError(t, got.Body.Close())
	ctx, hangUp := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", server.URL, nil)
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := server.Client().Do(r)
		done <- err
	}()
	require.Eventually(t, func() bool { return lim.Stats().Waiting == 1 }, 10*time.Second, ms)
	hangUp()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Eventually(t, func() bool { return lim.Stats().Canceled == 1 }, 10*time.Second, ms)
	require.Zero(t, lim.Stats().Waiting)
	require.EqualValues(t, 1, h.n.Load())
}
