// Demo shows what sluice does, in seconds and with nothing installed:
//
//	go run ./cmd/demo            # a rate limit on an Asynq queue
//	go run ./cmd/demo wait       # goroutines in line, some of which leave
//	go run ./cmd/demo compare    # five limiters under the same arrivals
//	go run ./cmd/demo tune       # which rate, which burst, and why
//	go run ./cmd/demo serve      # a live page with sliders
//
// Each explains itself with -h. The exit status is 0 when what was to be shown held, 1 when it did not, 2 for a bad flag
// and 130 after an interrupt.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/cmd/demo/internal/compare"
	"github.com/fadf4e53/sluice/cmd/demo/internal/queuerun"
	"github.com/fadf4e53/sluice/cmd/demo/internal/serve"
	"github.com/fadf4e53/sluice/cmd/demo/internal/tune"
	"github.com/fadf4e53/sluice/cmd/demo/internal/waitrun"
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

// commands are listed as -h lists them; the first is what demo does without a name.
func commands() []entry {
	return []entry{
		{"queue", "a rate limit on an Asynq queue: nothing dropped, nothing too early (the default)", queuerun.Command()},
		{"wait", "goroutines in line at one limiter, some of whom leave", waitrun.Command()},
		{"compare", "five limiters under the same arrivals, on a virtual clock, as table and picture", compare.Command()},
		{"tune", "say what you know, and it says which rate, which burst, and why", tune.Command()},
		{"serve", "a live page on which the limit is turned while work runs under it", serve.Command()},
	}
}

type entry struct {
	name, line string
	command    cli.Command
}

// run is the whole program. The end of ctx is Ctrl-C.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	all := commands()
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help") {
			help(stdout, all)
			return cli.OK
		}
		return all[0].command.Main(ctx, args, stdout, stderr)
	}
	for _, e := range all {
		if e.name == args[0] {
			return e.command.Main(ctx, args[1:], stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "demo: there is no command %q; demo -h lists them\n", args[0])
	return cli.Usage
}

func help(w io.Writer, all []entry) {
	fmt.Fprint(w, "sluice makes work wait its turn, exactly and first come, first served. Demo shows it.\n\nUsage: demo [command] [flags]\n\n")
	for _, e := range all {
		fmt.Fprintf(w, "  demo %-8s  %s\n", e.name, e.line)
	}
	fmt.Fprint(w, "\nEach explains itself: demo compare -h. Without a command it is demo queue:\n\n")
	all[0].command.Help(w)
}
