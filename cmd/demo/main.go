// Demo shows a queue.Gate at work, in about ten seconds and with nothing installed:
//
//	go run ./cmd/demo
//
// It drops several hundred jobs of two kinds into one Asynq queue: "limited" ones, which may start at -rate only, and
// "free" ones, which have no limit and stand behind them. Then it lets one worker loose on the queue and measures what
// happens: every start, by the handler's own clock, and at the end every job, by the queue's own books. The Redis is
// embedded unless -redis names one.
//
// The exit status is 0 when the limit held and every job was done, 1 when it did not or one was not, 2 for a bad flag and
// 130 after an interrupt, which hands back what waits and says what is left in the queue.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"
)

const (
	exitOK          = 0
	exitBroken      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program on the spot
	redis.SetLogger(silent{})
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// silent keeps go-redis from writing to the terminal, past everything, what the calls return as errors anyway.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// run is the whole program. The end of ctx is Ctrl-C.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "demo: %v (-h lists the flags)\n", err)
		return exitUsage
	}
	r, err := demonstrate(ctx, s, stdout, stderr)
	if err != nil {
		for line := range strings.Lines(err.Error()) { // one for each error that was joined
			fmt.Fprintf(stderr, "demo: %s\n", strings.TrimSuffix(line, "\n"))
		}
		return exitBroken
	}
	r.write(stdout)
	switch {
	case len(r.problems()) > 0:
		return exitBroken
	case r.interrupted:
		return exitInterrupted
	}
	return exitOK
}
