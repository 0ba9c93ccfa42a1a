package httplimit_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

func ExampleNew() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.Per(100, time.Minute), Burst: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	limit, err := httplimit.New(httplimit.Config{Limiter: limiter})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("GET /search", limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "found")
	})))

	for range 3 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/search", nil))
		fmt.Print(w.Code, " ", w.Body)
		for _, name := range []string{"Retry-After", "RateLimit-Policy", "RateLimit"} {
			if value := w.Header().Get(name); value != "" {
				fmt.Printf("    %s: %s\n", name, value)
			}
		}
	}
	// Output:
	// 200 found
	// 200 found
	// 429 Too Many Requests
	//     Retry-After: 1
	//     RateLimit-Policy: "default";q=5;w=3
	//     RateLimit: "default";r=0;t=1
}

// Each client has a limit, all of them together have another, and health checks have none.
func ExampleConfig_route() {
	everybody, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(500), Burst: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	clients, err := keyed.New(keyed.Config[string]{
		New: func(string) (sluice.Limiter, error) {
			return waiter.New(waiter.Config{Rate: sluice.PerSecond(5), Burst: 1})
		},
		MaxKeys: 10_000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	client := httplimit.ByAddress(netip.MustParsePrefix("10.0.0.0/8")) // our load balancers
	limit, err := httplimit.New(httplimit.Config{
		Route: func(r *http.Request) sluice.Limiter {
			if r.URL.Path == "/healthz" {
				return nil
			}
			return sluice.All(everybody, clients.For(client(r)))
		},
		MaxWait: 100 * time.Millisecond,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	h := limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))

	for _, s := range []struct{ path, forwarded string }{
		{"/", "203.0.113.7"},
		{"/", "203.0.113.7"},
		{"/", "198.51.100.1, 203.0.113.7"}, // a forged address is no second client
		{"/", "192.0.2.1"},
		{"/healthz", "203.0.113.7"},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", s.path, nil)
		r.RemoteAddr = "10.0.0.1:40000"
		r.Header.Set("X-Forwarded-For", s.forwarded)
		h.ServeHTTP(w, r)
		fmt.Println(w.Code, s.path, s.forwarded)
	}
	// Output:
	// 200 / 203.0.113.7
	// 429 / 203.0.113.7
	// 429 / 198.51.100.1, 203.0.113.7
	// 200 / 192.0.2.1
	// 200 /healthz 203.0.113.7
}

// The body of a refusal is the program's own: here, a JSON problem (RFC 9457).
func ExampleConfig_refuse() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Minute), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	limit, err := httplimit.New(httplimit.Config{
		Limiter: limiter,
		Refuse: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTooManyRequests)
			_ = json.NewEncoder(w).Encode(map[string]any{
				"type":     "https://iana.org/assignments/http-problem-types#quota-exceeded",
				"title":    "Too many requests.",
				"status":   http.StatusTooManyRequests,
				"detail":   "Come again in " + w.Header().Get("Retry-After") + " seconds.",
				"instance": r.URL.Path,
			})
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(limit(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	defer server.Close()
	for range 2 {
		got, err := server.Client().Get(server.URL + "/report")
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(got.Body)
		_ = got.Body.Close()
		fmt.Print(got.Status, "\n", string(body))
	}
	// Output:
	// 200 OK
	// 429 Too Many Requests
	// {"detail":"Come again in 60 seconds.","instance":"/report","status":429,"title":"Too many requests.","type":"https://iana.org/assignments/http-problem-types#quota-exceeded"}
}

func ExampleByAddress() {
	client := httplimit.ByAddress(netip.MustParsePrefix("10.0.0.0/8"))
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "10.0.0.1:40000"                                                          // the proxy that we talk to
	r.Header.Set("X-Forwarded-For", "127.0.0.1, 2001:db8:1:2:aaaa:bbbb:cccc:dddd, 10.0.0.9") // forged, client, a proxy before it
	fmt.Println(client(r))
	r.RemoteAddr = "203.0.113.7:40000" // not one of ours: nothing that it says is believed
	fmt.Println(client(r))
	// Output:
	// 2001:db8:1:2::/64
	// 203.0.113.7
}

func ExampleByBearer() {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "bearer s3cret")
	fmt.Println(httplimit.ByBearer(r))
	// Output:
	// s3cret
}

func ExampleByHeader() {
	key := httplimit.ByHeader("X-API-Key")
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-API-Key", "team-7")
	fmt.Println(key(r))
	// Output:
	// team-7
}
