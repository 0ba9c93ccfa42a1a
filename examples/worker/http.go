package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/metrics"
)

// A web serves /metrics and /healthz, from before the first job until after the last.
type web struct {
	addr     string
	draining atomic.Bool
	failed   chan error
	server   *http.Server
}

func listen(addr string, global sluice.Limiter, observe *metrics.Collector) (*web, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(observe, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	w := &web{addr: l.Addr().String(), failed: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", w.health(global))
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { w.failed <- w.server.Serve(l) }()
	return w, nil
}

// health says whether this worker can do its work: a readiness probe. Do not restart it for a 503; that brings no Redis
// back.
func (w *web) health(global sluice.Limiter) http.HandlerFunc {
	return func(out http.ResponseWriter, r *http.Request) {
		if w.draining.Load() {
			http.Error(out, "draining", http.StatusServiceUnavailable)
			return
		}
		// Nothing is taken. It asks Redis as the work does, and answers as soon: in 200 ms, or at once while Redis is
		// known to be out. A PING of the client's would wait for its timeouts, and try again.
		if _, err := global.Try(r.Context(), 0); err != nil {
			http.Error(out, "redis is out: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(out, "ok")
	}
}

func (w *web) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.server.Shutdown(ctx) // a scrape that takes longer is cut off
}
