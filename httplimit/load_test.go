package httplimit_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
)

// go test ./httplimit -run TenTimesTheLimit -v -load 10s
var load = flag.Duration("load", 0, "how long to load the server; also judges how fast it refuses")

// Ten times as many requests come as the limit allows, over real connections.
func TestTenTimesTheLimit(t *testing.T) {
	const rate, burst, most = 100, 20, 20 // most: what one request costs at most
	lim := newWaiter(t, sluice.PerSecond(rate), burst)
	limit, err := httplimit.New(httplimit.Config{
		Limiter: lim,
		Cost: func(r *http.Request) int {
			n, _ := strconv.Atoi(r.Header.Get("Cost"))
			return n
		},
	})
	require.NoError(t, err)
	server := httptest.NewServer(limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	ask := func(cost int) (*http.Response, time.Duration, error) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
		if err != nil {
			return nil, 0, err
		}
		r.Header.Set("Cost", strconv.Itoa(cost))
		began := time.Now()
		got, err := server.Client().Do(r)
		if err == nil {
			err = got.Body.Close()
		}
		return got, time.Since(began), err
	}

	long := *load
	if long == 0 {
		long = 1500 * time.Millisecond
	}
	var (
		mu              sync.Mutex // guards what follows
		units, requests int
		refusals        []time.Duration
	)
	began := time.Now()
	var all sync.WaitGroup
	const clients = 10
	for i := range clients {
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Second / (10 * rate)) // not all at once
			every := time.NewTicker(clients * time.Second / (10 * rate))
			defer every.Stop()
			for n := i; time.Since(began) < long; n++ {
				<-every.C
				cost := 1
				if n%50 == 0 {
					cost = most
				}
				got, took, err := ask(cost)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				requests++
				switch got.StatusCode {
				case http.StatusOK:
					units += cost
				case http.StatusTooManyRequests:
					refusals = append(refusals, took)
					if after := got.Header.Get("Retry-After"); after != "1" { // most/rate is 200 ms
						t.Errorf("Retry-After %q", after)
					}
				default:
					t.Errorf("status %d", got.StatusCode)
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	took := time.Since(began)

	allowed := burst + rate*took.Seconds()
	slices.Sort(refusals)
	require.NotEmpty(t, refusals)
	p50, p99 := refusals[len(refusals)/2], refusals[len(refusals)*99/100]
	t.Logf("%v: %d requests, %.0f/s; admitted %d units, allowed %.1f; refused %d, p50 %v, p99 %v, worst %v",
		took.Round(ms), requests, float64(requests)/took.Seconds(), units, allowed, len(refusals), p50, p99, refusals[len(refusals)-1])
	require.LessOrEqual(t, float64(units), allowed)
	require.EqualValues(t, units, lim.Stats().Units)
	if *load > 0 {
		require.Less(t, p99, ms)
		require.Greater(t, float64(units), 0.95*allowed, "and the limit is reached")
	}

	// Retry-After is true: who obeys it, alone, passes.
	for cost := 1; cost <= most; cost += most - 1 {
		for {
			got, _, err := ask(cost)
			require.NoError(t, err)
			if got.StatusCode == http.StatusOK {
				continue // until there is a refusal to obey
			}
			after, err := strconv.Atoi(got.Header.Get("Retry-After"))
			require.NoError(t, err)
			time.Sleep(time.Duration(after) * time.Second)
			got, _, err = ask(cost)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, got.StatusCode, "cost %d after %d s", cost, after)
			break
		}
	}
}
