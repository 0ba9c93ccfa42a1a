package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
	"github.com/fadf4e53/sluice/metrics"
	"github.com/fadf4e53/sluice/queue"
	"github.com/fadf4e53/sluice/waiter"
)

func Example() {
	bucket, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Minute), Burst: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	observe := metrics.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(observe)

	limiter := observe.Limiter("mail", bucket) // use this one from here on
	for range 3 {
		if err := limiter.Wait(context.Background(), 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	d, err := limiter.Try(context.Background(), 1)
	fmt.Println(d.Allowed, err)

	for _, name := range []string{"sluice_granted_total", "sluice_refused_total", "sluice_wait_seconds_bucket", "sluice_available_units"} {
		fmt.Println(firstLine(registry, name))
	}
	// Output:
	// false <nil>
	// sluice_granted_total{limiter="mail"} 3
	// sluice_refused_total{limiter="mail",reason="not_now"} 1
	// sluice_wait_seconds_bucket{limiter="mail",le="0"} 3
	// sluice_available_units{limiter="mail"} 0
}

func ExampleCollector_Gate() {
	bucket, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(50), Burst: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	observe := metrics.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(observe)

	gate, err := queue.NewGate(queue.Config{Limiter: observe.Limiter("mail", bucket)})
	if err != nil {
		fmt.Println(err)
		return
	}
	observe.Gate("mail", func() metrics.GateStats { return metrics.GateStats(gate.Stats()) })
	fmt.Println(firstLine(registry, "sluice_gate_started_total"))
	// Output:
	// sluice_gate_started_total{limiter="mail"} 0
}

func ExampleCollector_Redis() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	shared, err := cluster.New(client, cluster.Config{Name: "mail", Rate: sluice.PerSecond(50), Burst: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer shared.Close()
	observe := metrics.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(observe)

	observe.Redis("mail", func() metrics.RedisHealth { return metrics.RedisHealth(shared.Health()) })
	fmt.Println(firstLine(registry, "sluice_redis_up"))
	// Output:
	// sluice_redis_up{limiter="mail"} 1
}

// firstLine returns the first line of a scrape that has a number for a metric, and one that is not 0 before one that is.
func firstLine(registry *prometheus.Registry, name string) string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	found := ""
	for line := range strings.Lines(w.Body.String()) {
		if !strings.HasPrefix(line, name+"{") {
			continue
		}
		if found == "" || strings.HasSuffix(found, " 0\n") {
			found = line
		}
	}
	return strings.TrimSpace(found)
}
