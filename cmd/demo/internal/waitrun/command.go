// Package waitrun is `demo wait`: goroutines in line at one limiter, some of whom leave.
package waitrun

import (
	"context"
	"flag"
	"io"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/waiter"
)

// settings are what the flags say.
type settings struct {
	rate  sluice.Rate
	burst int
	n     int // goroutines
	leave int // of them
	after time.Duration
}

// Command returns `demo wait`.
func Command() cli.Command {
	var s settings
	return cli.Command{
		Name: "demo wait",
		About: `
Lets goroutines call Wait on one limiter, and some of them give up while they stand in line.

Whoever gives up has taken nothing, and all behind move up at once: no turn passes unused. A limiter that tells
everybody their turn on arrival cannot do that, and stands idle until the turns of those who left have gone by.

Each line shows the starts as they happen. At the end everything is counted: nobody may be missing, no second may have
seen more starts than burst + rate, and no turn may have been wasted.

The exit status is 0 when that is so, 1 when not, 130 after an interrupt.`,
		Example: "demo wait -n 200 -rate 40/s -leave 100 -after 500ms",
		Flags:   func(fs *flag.FlagSet) { flags(fs, &s) },
		Run: func(ctx context.Context, stdout, _ io.Writer) (int, error) {
			l, err := waiter.New(waiter.Config{Rate: s.rate, Burst: s.burst})
			if err != nil {
				return cli.Broken, err
			}
			defer l.Close()
			return run(ctx, s, l, stdout), nil
		},
	}
}

func flags(fs *flag.FlagSet, s *settings) {
	*s = settings{rate: sluice.PerSecond(25), burst: 5, n: 100, leave: 50, after: 900 * time.Millisecond}
	cli.Rate(fs, &s.rate, "rate", "how often goroutines may start, as `units/time`: 25/s, 3/min, 10/2s")
	cli.Count(fs, &s.burst, "burst", 1, 1_000_000, "up to `n` may start at once")
	cli.Count(fs, &s.n, "n", 1, 100_000, "`n` goroutines come, all at once")
	cli.Count(fs, &s.leave, "leave", 0, 100_000, "the next `n` in line give up")
	cli.Span(fs, &s.after, "after", 0, time.Hour, "the `time` after which those of -leave give up, like 500ms")
}
