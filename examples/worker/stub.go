package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
	"github.com/fadf4e53/sluice/waiter"
)

// A stub is a downstream for trying out: it answers 204, and above its quota 429 with Retry-After.
type stub struct {
	http.Handler
	quota             *waiter.Limiter
	accepted, refused atomic.Uint64
}

// newStub lets bursts of half a second's worth go, as services that publish a rate do in one way or another: who kept to the
// rate when he sent is not refused because the network was late with some of it.
func newStub(rate sluice.Rate) (*stub, error) {
	quota, err := waiter.New(waiter.Config{Rate: rate, Burst: stubBurst(rate)})
	if err != nil {
		return nil, err
	}
	s := &stub{quota: quota}
	limit, err := httplimit.New(httplimit.Config{
		Limiter: quota,
		Refuse: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			s.refused.Add(1)
			w.WriteHeader(http.StatusTooManyRequests)
		}),
	})
	if err != nil {
		return nil, err
	}
	s.Handler = limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.accepted.Add(1)
		w.WriteHeader(http.StatusNoContent)
	}))
	return s, nil
}

func stubBurst(rate sluice.Rate) int { return int(max(1, min(rate.UnitsIn(time.Second/2), 1_000_000))) }

// serveStub runs a stub until ctx ends, and says every second what came.
func serveStub(ctx context.Context, c config, log *slog.Logger) error {
	s, err := newStub(c.quota)
	if err != nil {
		return err
	}
	server := &http.Server{Addr: c.stub, Handler: s, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	log.Info("downstream stub", "address", c.stub, "quota", c.quota.String(), "burst", stubBurst(c.quota))

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last uint64
	for {
		select {
		case <-tick.C:
			accepted, refused := s.accepted.Load(), s.refused.Load()
			if accepted+refused > last {
				log.Info("so far", "accepted", accepted, "refused", refused)
			}
			last = accepted + refused
		case err := <-failed:
			return fmt.Errorf("stub: %w", err)
		case <-ctx.Done():
			return errors.Join(server.Close(), s.quota.Close())
		}
	}
}
