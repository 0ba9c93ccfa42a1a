package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/fadf4e53/sluice"
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

func flags(s *settings) *flag.FlagSet {
	*s = settings{burst: 10, jobs: 400, free: 400, concurrency: 20}
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run says it, in one line
	fs.Usage = func() {}
	fs.TextVar(&s.rate, "rate", sluice.PerSecond(50), "how often limited jobs may start, as `units/time`: 50/s, 3/min, 10/2s")
	fs.Var(&count{&s.burst, 1, 1_000_000}, "burst", "up to `n` limited jobs may start at once")
	fs.Var(&count{&s.jobs, 1, 100_000}, "jobs", "`n` limited jobs")
	fs.Var(&count{&s.free, 0, 100_000}, "free", "`n` jobs without a limit, behind those")
	fs.Var(&count{&s.concurrency, 1, 1000}, "concurrency", "`n` worker slots")
	fs.Var((*address)(&s.redis), "redis", "`host:port` of a real Redis; the run uses a queue of its own and deletes it (default: embedded)")
	return fs
}

// parse returns the settings, or an error that names the flag, its value and the rule.
func parse(args []string) (settings, error) {
	var s settings
	fs := flags(&s)
	if err := fs.Parse(args); err != nil {
		return settings{}, err
	}
	if fs.NArg() > 0 {
		return settings{}, fmt.Errorf("argument %q: there are flags only", fs.Arg(0))
	}
	return s, nil
}

func usage(w io.Writer) {
	fs := flags(new(settings))
	fs.SetOutput(w)
	fmt.Fprintln(w, "Usage: demo [flags]\n\nShows a rate limit on an Asynq queue: nothing dropped, nothing too early, nobody else held up.")
	fmt.Fprintln(w)
	fs.PrintDefaults()
}

// A count is a flag's whole number within bounds. flag.Int would say "parse error" of 10.5 and nothing of -3.
type count struct {
	n        *int
	min, max int
}

func (c *count) String() string {
	if c.n == nil {
		return ""
	}
	return strconv.Itoa(*c.n)
}

func (c *count) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < c.min || n > c.max {
		return fmt.Errorf("must be a whole number from %d to %d", c.min, c.max)
	}
	*c.n = n
	return nil
}

type address string

func (a *address) String() string { return string(*a) }

func (a *address) Set(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" {
		return fmt.Errorf("must be host:port, like localhost:6379")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("port %q must be a whole number from 1 to 65535", port)
	}
	*a = address(text)
	return nil
}
