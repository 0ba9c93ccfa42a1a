// Package serve is `demo serve`: a page on which a limit can be turned while work runs under it.
package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

// settings are what the flags say.
type settings struct {
	addr string
	knobs
	concurrency int
}

// Command returns `demo serve`.
func Command() cli.Command {
	var s settings
	return cli.Command{
		Name: "demo serve",
		About: `
Opens a page on which a limit can be turned while work runs under it.

Jobs arrive in an Asynq queue in an embedded Redis; one worker runs them behind a Gate with a token bucket. The page
shows arrivals, starts, the line and deferrals as they happen. Its sliders turn rate, burst, capacity and the arrivals
of the running limiter; one button drops 500 jobs at once, another makes the service behind answer 429 for 3 s.

It listens on this machine only, prints the URL, needs no network and ends with Ctrl-C.`,
		Example: "demo serve -rate 20/s",
		Flags:   func(fs *flag.FlagSet) { flags(fs, &s) },
		Run: func(ctx context.Context, stdout, stderr io.Writer) (int, error) {
			return run(ctx, s, stdout, stderr)
		},
	}
}

func flags(fs *flag.FlagSet, s *settings) {
	*s = settings{
		addr:        "127.0.0.1:0",
		knobs:       knobs{Rate: 50, Burst: 10, Capacity: 2000, Arrivals: 30},
		concurrency: 20,
	}
	fs.StringVar(&s.addr, "addr", s.addr, "`host:port` to listen on; port 0: a free one")
	cli.Count(fs, &s.Rate, "rate", 1, maxRate, "`n` starts a second are allowed at first")
	cli.Count(fs, &s.Burst, "burst", 1, maxBurst, "up to `n` start at once at first")
	cli.Count(fs, &s.Capacity, "capacity", 0, maxCapacity, "up to `n` jobs stand in line at first; more are turned away")
	cli.Count(fs, &s.Arrivals, "arrivals", 0, maxArrivals, "`n` jobs arrive a second at first")
	cli.Count(fs, &s.concurrency, "concurrency", 4, 1000, "`n` worker slots")
}

// run serves until ctx ends.
func run(ctx context.Context, s settings, stdout, stderr io.Writer) (_ int, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return cli.Broken, fmt.Errorf("-addr %s: %w", s.addr, err)
	}
	// Everything below hangs on this context, so that an interrupt ends the streams of all pages with the rest.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w, err := open(ctx, s, log)
	if err != nil {
		return cli.Broken, errors.Join(err, listener.Close())
	}
	defer func() { err = errors.Join(err, w.close()) }()

	srv := &http.Server{
		Handler:           handler(w),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(listener) }()
	fmt.Fprintf(stdout, "http://%s\nCtrl-C ends it.\n", listener.Addr())
	select {
	case <-ctx.Done():
		// The streams end with ctx; whoever does not is cut off.
		patience, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		if srv.Shutdown(patience) != nil {
			err = srv.Close()
		}
		<-failed
	case err = <-failed:
	}
	if err != nil {
		return cli.Broken, err
	}
	return cli.OK, nil
}
