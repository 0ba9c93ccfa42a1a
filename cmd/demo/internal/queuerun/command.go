// Package queuerun is `demo queue`: jobs under a limit beside jobs under none, in one Asynq queue.
package queuerun

import (
	"context"
	"flag"
	"io"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

// settings are what the flags say.
type settings struct {
	redis       string // host:port; "": an embedded one
	rate        sluice.Rate
	burst       int
	jobs        int // limited ones
	free        int // those without a limit
	concurrency int
}

// Command returns `demo queue`.
func Command() cli.Command {
	var s settings
	return cli.Command{
		Name: "demo queue",
		About: `
Shows a rate limit on an Asynq queue: nothing dropped, nothing too early, nobody else held up.

Jobs of two kinds are dropped into one queue: "limited" ones, which may start at -rate only, and "free" ones, which
have no limit and stand behind them. One worker takes them out. Every start is counted by the handler's own clock, and
at the end every job is looked for in the queue's own books. It takes about ten seconds; nothing need be installed.

The exit status is 0 when the limit held and every job was done, 1 when not, 130 after an interrupt.`,
		Example: "demo queue -rate 20/s -burst 5 -jobs 100 -free 1000",
		Flags:   func(fs *flag.FlagSet) { flags(fs, &s) },
		Run: func(ctx context.Context, stdout, stderr io.Writer) (int, error) {
			r, err := demonstrate(ctx, s, stdout, stderr)
			if err != nil {
				return cli.Broken, err
			}
			r.write(stdout)
			switch {
			case r.wrong():
				return cli.Broken, nil
			case r.interrupted:
				return cli.Interrupted, nil
			}
			return cli.OK, nil
		},
	}
}

func flags(fs *flag.FlagSet, s *settings) {
	*s = settings{rate: sluice.PerSecond(50), burst: 10, jobs: 400, free: 400, concurrency: 20}
	cli.Rate(fs, &s.rate, "rate", "how often limited jobs may start, as `units/time`: 50/s, 3/min, 10/2s, unlimited")
	cli.Count(fs, &s.burst, "burst", 1, 1_000_000, "up to `n` limited jobs may start at once")
	cli.Count(fs, &s.jobs, "jobs", 1, 100_000, "`n` limited jobs")
	cli.Count(fs, &s.free, "free", 0, 100_000, "`n` jobs without a limit, behind those")
	cli.Count(fs, &s.concurrency, "concurrency", 1, 1000, "`n` worker slots")
	cli.Address(fs, &s.redis, "redis", "`host:port` of a real Redis; the run uses a queue of its own and deletes it (default: embedded)")
}
