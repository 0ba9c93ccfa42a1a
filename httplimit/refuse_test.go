package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/httplimit"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

func TestARefusedRequestIsToldWhenToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := behind(t, httplimit.Config{Limiter: newWaiter(t, sluice.Every(2*time.Second), 1)})
		first := get(t.Context(), h)
		require.Equal(t, 200, first.StatusCode)
		require.Empty(t, first.Header, "the response is the handler's own")

		time.Sleep(300 * ms)
		no := get(t.Context(), h)
		require.Equal(t, 429, no.StatusCode)
		require.Equal(t, []string{"2"}, no.Header["Retry-After"], "1.7 s, rounded up")
		require.Equal(t, []string{`"default";q=1;w=2`}, no.Header["Ratelimit-Policy"])
		require.Equal(t, []string{`"default";r=0;t=2`}, no.Header["Ratelimit"])
		body, err := io.ReadAll(no.Body)
		require.NoError(t, err)
		require.Equal(t, "Too Many Requests\n", string(body))
		require.EqualValues(t, 1, h.n.Load())

		time.Sleep(2 * time.Second)
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
	})
}

// Retry-After is neither too short, so that the retry fails, nor a second too long.
func TestARetryAtThatMomentPasses(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			burst := 1 + random.IntN(5)
			rate := sluice.Per(1+random.Int64N(5), time.Duration(1+random.Int64N(int64(5*time.Second))))
			lim, err := waiter.New(waiter.Config{Rate: rate, Burst: burst, MaxWaiters: random.IntN(3)})
			require.NoError(t, err)
			cost := 1
			c := httplimit.Config{
				Limiter: lim,
				Cost:    func(*http.Request) int { return cost },
				MaxWait: time.Duration(random.IntN(3)) * 700 * ms,
			}
			h := behind(t, c)
			lines, leave := context.WithCancel(t.Context())
			defer leave()
			for range 10 {
				if random.IntN(3) == 0 {
					go get(lines, h) // others who may be in line
					synctest.Wait()
				}
				cost = 1 + random.IntN(burst)
				began := time.Now()
				no := get(t.Context(), h)
				if no.StatusCode == 200 {
					continue
				}
				require.Zero(t, time.Since(began), "refused at once")
				after, err := strconv.Atoi(no.Header.Get("Retry-After"))
				require.NoError(t, err)
				require.Positive(t, after)
				if after > 1 {
					time.Sleep(time.Duration(after-1) * time.Second)
					if c.MaxWait == 0 {
						require.Equal(t, 429, get(t.Context(), h).StatusCode, "a second earlier")
					}
				} else {
					after = 1
				}
				time.Sleep(time.Second)
				require.Equal(t, 200, get(t.Context(), h).StatusCode, "rate %v burst %d cost %d after %d", rate, burst, cost, after)
			}
		})
	}
}

func TestTheStatusSaysWhoseFaultItIs(t *testing.T) {
	quiet(t)
	closed := newWaiter(t, sluice.PerSecond(1), 1)
	require.NoError(t, closed.Close())
	outage := fmt.Errorf("cluster: %w: %w", cluster.ErrOutage, context.DeadlineExceeded)
	for name, s := range map[string]struct {
		limiter sluice.Limiter
		cost    int
		status  int
		retry   string
	}{
		"more than the burst":        {newWaiter(t, sluice.PerSecond(1), 2), 3, 400, ""},
		"Redis is out":               {broken{err: outage}, 1, 503, ""},
		"any other fault of Redis":   {broken{err: errors.New("WRONGTYPE")}, 1, 503, ""},
		"closed":                     {closed, 1, 503, ""},
		"a negative cost":            {newWaiter(t, sluice.PerSecond(1), 2), -1, 500, ""},
		"a limiter of the zero kind": {&waiter.Limiter{}, 1, 500, ""},
		"refused for ever":           {broken{err: &sluice.Refusal{Reason: sluice.ErrMaxWait, RetryAfter: sluice.Never}}, 1, 429, ""},
		"refused":                    {broken{err: &sluice.Refusal{Reason: sluice.ErrMaxWait, RetryAfter: 1001 * ms}}, 1, 429, "2"},
	} {
		for _, hold := range []time.Duration{0, 50 * ms} {
			t.Run(fmt.Sprint(name, hold), func(t *testing.T) {
				h := behind(t, httplimit.Config{Limiter: s.limiter, Cost: func(*http.Request) int { return s.cost }, MaxWait: hold})
				got := get(t.Context(), h)
				require.Equal(t, s.status, got.StatusCode)
				require.Equal(t, s.retry, got.Header.Get("Retry-After"))
				require.Empty(t, got.Header.Get("RateLimit"))
				require.Zero(t, h.n.Load(), "the handler is not called")
				body, err := io.ReadAll(got.Body)
				require.NoError(t, err)
				require.NotContains(t, string(body), "httplimit:", "no error is shown to a client")
			})
		}
	}
}

// quiet catches what is logged.
func quiet(t testing.TB) *strings.Builder {
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &log
}

func TestAMistakeIsLoggedWithItsValueAndRuleOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := quiet(t)
		h := behind(t, httplimit.Config{
			Limiter: newWaiter(t, sluice.PerSecond(1), 1),
			Cost:    func(*http.Request) int { return -7 },
		})
		for range 5 { // at 0, 250, 500, 750 and 1000 ms
			require.Equal(t, 500, get(t.Context(), h).StatusCode)
			time.Sleep(250 * ms)
		}
		require.Equal(t, 2, strings.Count(log.String(), "Config.Cost is -7 for a GET request"))
		require.Equal(t, 2, strings.Count(log.String(), "must be at least 0"))
	})
}

func TestTheBodyIsRefuses(t *testing.T) {
	for name, s := range map[string]struct {
		refuse http.HandlerFunc
		status int
		body   string
	}{
		"silent":               {func(http.ResponseWriter, *http.Request) {}, 429, ""},
		"a body":               {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "later") }, 429, "later"},
		"a status":             {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, 503, ""},
		"flushed":              {func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, 429, ""},
		"the header is set":    {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, w.Header().Get("Retry-After")) }, 429, "9"},
		"hints, then the rest": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); _, _ = io.WriteString(w, "x") }, 429, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			lim := newWaiter(t, sluice.Every(9*time.Second), 1)
			require.NoError(t, lim.Wait(t.Context(), 1))
			server := httptest.NewServer(behind(t, httplimit.Config{Limiter: lim, Refuse: s.refuse}))
			defer server.Close()
			got, err := server.Client().Get(server.URL)
			require.NoError(t, err)
			defer got.Body.Close()
			require.Equal(t, s.status, got.StatusCode)
			require.Equal(t, "9", got.Header.Get("Retry-After"))
			body, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.Equal(t, s.body, string(body))
		})
	}
}

// A pacer has room for work that is to start later. With MaxWait 0 that does not start, and leaves nothing behind.
func TestAPacerRefusesWhatCannotStartNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := leaky.New(leaky.Config{Rate: sluice.Every(1500 * ms), Capacity: 10})
		require.NoError(t, err)
		h := behind(t, httplimit.Config{Limiter: p})
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
		for range 3 {
			no := get(t.Context(), h)
			require.Equal(t, 429, no.StatusCode)
			require.Equal(t, "2", no.Header.Get("Retry-After"))
			require.Equal(t, `"default";r=0;t=2`, no.Header.Get("RateLimit"))
		}
		time.Sleep(1500 * ms)
		require.Equal(t, 200, get(t.Context(), h).StatusCode)
		held := behind(t, httplimit.Config{Limiter: p, MaxWait: 15 * time.Second})
		began := time.Now()
		require.Equal(t, 200, get(t.Context(), held).StatusCode)
		require.Equal(t, 1500*ms, time.Since(began))
	})
}

func TestWhatIsLeftIsWhatCouldGoNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pacer, err := leaky.New(leaky.Config{Rate: sluice.PerSecond(1), Capacity: 10})
		require.NoError(t, err)
		for _, s := range []struct {
			limiter sluice.Limiter
			hold    time.Duration
			cost    int
			want    string
		}{
			{newWaiter(t, sluice.PerSecond(1), 5), 0, 4, `"default";r=3;t=1`},
			{newWaiter(t, sluice.PerSecond(1), 5), 500 * ms, 4, `"default";r=3;t=1`},
			{pacer, 500 * ms, 1, `"default";r=0;t=2`}, // there is room, and no turn
			{forEver{newWaiter(t, sluice.PerSecond(1), 5)}, time.Second, 1, `"default";r=0`},
		} {
			require.NoError(t, s.limiter.Wait(t.Context(), 2))
			h := behind(t, httplimit.Config{Limiter: s.limiter, MaxWait: s.hold, Cost: func(*http.Request) int { return s.cost }})
			no := get(t.Context(), h)
			require.Equal(t, 429, no.StatusCode)
			require.Equal(t, s.want, no.Header.Get("RateLimit"))
		}
	})
}

// forEver lets two units go and nothing more.
type forEver struct{ sluice.Limiter }

func (forEver) Wait(_ context.Context, n int) error {
	if n == 2 {
		return nil
	}
	return &sluice.Refusal{Reason: sluice.ErrMaxWait, N: n, RetryAfter: sluice.Never}
}

func TestTwoLayersChargeBothOrNeither(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		everybody := newWaiter(t, sluice.Every(time.Minute), 3)
		users, err := keyed.New(keyed.Config[string]{
			New:     func(string) (sluice.Limiter, error) { return newWaiter(t, sluice.Every(time.Second), 1), nil },
			MaxKeys: 100,
		})
		require.NoError(t, err)
		name := httplimit.ByHeader("X-User")
		h := behind(t, httplimit.Config{Route: func(r *http.Request) sluice.Limiter {
			return sluice.All(everybody, users.For(name(r)))
		}})
		as := func(user string) *http.Response {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-User", user)
			h.ServeHTTP(w, r)
			return w.Result()
		}
		require.Equal(t, 200, as("a").StatusCode)
		for range 10 { // a's own limit says no: everybody's is not touched
			no := as("a")
			require.Equal(t, 429, no.StatusCode)
			require.Equal(t, "1", no.Header.Get("Retry-After"))
		}
		require.Equal(t, 2, everybody.Stats().Available)
		require.Equal(t, 200, as("b").StatusCode)
		require.Equal(t, 200, as("c").StatusCode)
		no := as("d") // everybody's says no: d's is not touched
		require.Equal(t, 429, no.StatusCode)
		require.Equal(t, "60", no.Header.Get("Retry-After"))
		require.Equal(t, 1, users.For("d").Stats().Available)
	})
}

func TestWhatHasNoLimitIsNotLimited(t *testing.T) {
	lim, closed := newWaiter(t, sluice.Every(time.Hour), 1), newWaiter(t, sluice.PerSecond(1), 1)
	require.NoError(t, closed.Close())
	for name, c := range map[string]httplimit.Config{
		"no route":        {Route: func(*http.Request) sluice.Limiter { return nil }},
		"a nil":           {Route: func(*http.Request) sluice.Limiter { return (*waiter.Limiter)(nil) }},
		"no cost":         {Limiter: lim, Cost: func(*http.Request) int { return 0 }},
		"no cost, closed": {Limiter: closed, Cost: func(*http.Request) int { return 0 }},
		"no cost held":    {Limiter: lim, Cost: func(*http.Request) int { return 0 }, MaxWait: time.Second},
	} {
		h := behind(t, c)
		for range 5 {
			require.Equal(t, 200, get(t.Context(), h).StatusCode, name)
		}
	}
	require.Equal(t, 1, lim.Stats().Available)
}

func TestAPanicOfTheUsersIsTheirs(t *testing.T) {
	lim := newWaiter(t, sluice.Every(time.Hour), 1)
	for _, c := range []httplimit.Config{
		{Route: func(*http.Request) sluice.Limiter { panic("no route") }},
		{Limiter: lim, Cost: func(*http.Request) int { panic("no cost") }},
	} {
		require.Panics(t, func() { get(t.Context(), behind(t, c)) })
	}
	require.Equal(t, 1, lim.Stats().Available, "and nothing was taken")
}

func TestNewNamesFieldValueAndRule(t *testing.T) {
	lim := newWaiter(t, sluice.PerSecond(1), 1)
	route := func(*http.Request) sluice.Limiter { return lim }
	for text, c := range map[string]httplimit.Config{
		"Config.Limiter is nil: required where Config.Route is nil too":                           {},
		"Config.Limiter is a *waiter.Limiter: must be nil where Config.Route is set: exactly one": {Limiter: lim, Route: route},
		"Config.Limiter is a nil *waiter.Limiter: must not be a nil pointer":                      {Limiter: (*waiter.Limiter)(nil)},
		"Config.MaxWait is -1ns: must be at least 0":                                              {Limiter: lim, MaxWait: -1},
		"Config.Refuse is a nil http.HandlerFunc: must not be a nil pointer":                      {Limiter: lim, Refuse: http.HandlerFunc(nil)},
	} {
		limit, err := httplimit.New(c)
		require.Nil(t, limit)
		require.ErrorIs(t, err, sluice.ErrInvalid)
		require.ErrorContains(t, err, "httplimit: "+text)
	}
}

func TestANilHandlerIsAMistakeAndNoPanic(t *testing.T) {
	log := quiet(t)
	lim := newWaiter(t, sluice.PerSecond(1), 1)
	limit, err := httplimit.New(httplimit.Config{Limiter: lim})
	require.NoError(t, err)
	require.Equal(t, 500, get(t.Context(), limit(nil)).StatusCode)
	require.Contains(t, log.String(), "handler is nil: must not be nil")
	require.Equal(t, 1, lim.Stats().Available)
}
