// Package compare is `demo compare`: five limiters with the same limit, under the same arrivals, on a virtual clock.
package compare

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

// Command returns `demo compare`.
func Command() cli.Command {
	var s settings
	return cli.Command{
		Name: "demo compare",
		About: `
Puts five limiters with the same limit under the same arrivals and counts what they let through: a fixed window, a
sliding window, a token bucket as golang.org/x/time/rate keeps it, and sluice's token bucket and leaky bucket.

The windows refuse what is over; the buckets let it wait, as long as -wait allows. Counted is the fullest second,
wherever it begins: a fixed window lets twice its limit through around the edge between two of its own. A bucket's law
is its rate and its burst.

The arrivals (-arrivals):
  edges   bursts right before and right after a full second
  pulse   20 times the limit for one second (2,000/s at the default limit)
  herd    all at once; most of them hang up while they wait, and more come
  steady  four fifths of the limit, evenly spaced

The clock is virtual, so it takes milliseconds and comes out the same everywhere. The exit status is 1 if one of
sluice's own limiters let more through than its law.`,
		Example: "demo compare -arrivals edges -o report.html",
		Flags:   func(fs *flag.FlagSet) { flags(fs, &s) },
		Run: func(_ context.Context, stdout, _ io.Writer) (int, error) {
			return show(s, stdout)
		},
	}
}

func flags(fs *flag.FlagSet, s *settings) {
	*s = settings{limit: 100, burst: 10, wait: 2 * time.Second, arrivals: "all"}
	words := []string{"all"}
	for _, p := range patterns {
		words = append(words, p.name)
	}
	cli.Count(fs, &s.limit, "limit", 1, 2000, "`n` starts a second are allowed")
	cli.Count(fs, &s.burst, "burst", 1, 100_000, "up to `n` may start at once in a token bucket that has rested")
	cli.Span(fs, &s.wait, "wait", time.Millisecond, time.Minute, "the longest `time` that a bucket lets anybody wait; beyond it refuses")
	cli.Choice(fs, &s.arrivals, "arrivals", words, "how callers arrive: a `pattern` from above, or all")
	fs.StringVar(&s.out, "o", "", "also draw it into this `file`: .html (light and dark, on a phone too), .svg or .png")
}

func show(s settings, stdout io.Writer) (int, error) {
	draw, err := drawer(s.out)
	if err != nil {
		return cli.Usage, err
	}
	scenes, err := play(s)
	if err != nil {
		return cli.Broken, err
	}
	for _, sc := range scenes {
		sc.write(stdout, s)
	}
	status := verdict(stdout, scenes, s)
	if draw == nil {
		return status, nil
	}
	drawn, err := draw(scenes, s)
	if err == nil {
		err = os.WriteFile(s.out, drawn, 0o644)
	}
	if err != nil {
		return cli.Broken, fmt.Errorf("-o %s: %w", s.out, err)
	}
	fmt.Fprintf(stdout, "Drawn into %s.\n", s.out)
	return status, nil
}

// drawer picks by the file's name; nil: nothing is to be drawn.
func drawer(file string) (func([]scene, settings) ([]byte, error), error) {
	switch ext := filepath.Ext(file); {
	case file == "":
		return nil, nil
	case ext == ".svg" || ext == ".png":
		return func(scenes []scene, s settings) ([]byte, error) { return picture(ext[1:], scenes, s) }, nil
	case ext == ".html":
		return page, nil
	}
	return nil, cli.Mistakef("-o %s: must end in .html, .svg or .png", file)
}
