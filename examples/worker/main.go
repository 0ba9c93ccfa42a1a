// Worker takes jobs from an Asynq queue and posts them to an HTTP service that has a quota: never faster than the quota,
// however many workers there are, never faster for one tenant than that tenant may, and without losing a job.
//
//	worker -stub 127.0.0.1:9000 -quota 50/s     # something to post to, with a quota
//	worker -rate 45/s -tenants acme=20/s        # the worker itself
//	worker -produce 1000 -tenants acme=20/s     # jobs for it
//
// It is meant to be copied. The README says what to change.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program on the spot
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
	}
	os.Exit(status(err))
}

// status is 0 after a graceful stop too, 2 for a configuration that cannot be right, and else 1.
func status(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errConfig):
		return 2
	}
	return 1
}

// run is the whole program. The end of ctx is SIGTERM.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) error {
	c, err := configure(args, env)
	if errors.Is(err, flag.ErrHelp) {
		help(stdout)
		return nil
	}
	if err != nil {
		return err
	}
	log := logTo(stderr)
	switch {
	case c.stub != "":
		return serveStub(ctx, c, log)
	case c.produce > 0:
		return produce(ctx, c, stdout)
	}
	return work(ctx, c, log)
}
