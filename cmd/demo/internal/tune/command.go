// Package tune is `demo tune`: from what is known of a downstream and of its callers to rate, burst, capacity, MaxWait
// and concurrency, each with its reason.
package tune

import (
	"context"
	"flag"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

// longestTolerated is what -wait may be at most.
const longestTolerated = year

// settings are what the flags say.
type settings struct {
	need
	pattern pattern
	length  time.Duration
	file    string
}

// Command returns `demo tune`.
func Command() cli.Command {
	var s settings
	return cli.Command{
		Name: "demo tune",
		About: `
Say what you know, and it says what to set: rate, burst, capacity, MaxWait and concurrency, each with its reason. Then
it puts a limiter with these numbers under your arrivals, on a virtual clock, and shows the outcome.

Known are what the downstream takes (-limit: so many in any such time, wherever it begins; -slots: calls at once), how
long a call takes, how long a caller may wait, and how callers arrive: as a rate (80/s), as herds (200@5s: 200 at once
every 5 s), as a sum of these (50/s+200@5s), or as a file of times.

It also holds the usual rules of thumb (API gateway, connection pool, queue consumer, login) against your numbers, and
shows what a burst of 100 × the rate does.

The exit status is 0 if there are such numbers, 1 if not: then it says which of yours is impossible, and what would do.`,
		Example: "demo tune -limit 100/s -slots 20 -handler 80ms -wait 2s -arrivals 40/s+150@5s",
		Flags:   func(fs *flag.FlagSet) { flags(fs, &s) },
		Run:     func(_ context.Context, stdout, _ io.Writer) (int, error) { return run(s, stdout) },
	}
}

func flags(fs *flag.FlagSet, s *settings) {
	*s = settings{
		need:   need{limit: quota{100, time.Second}, handler: 50 * time.Millisecond, wait: 2 * time.Second},
		length: 30 * time.Second,
	}
	if err := s.pattern.Set("40/s+150@5s"); err != nil {
		panic(err) // the text stands above
	}
	fs.Var(&s.limit, "limit", "what the downstream takes in any such time, as `units/time`: 100/s, 5000/h, 10/2s")
	cli.Count(fs, &s.slots, "slots", 0, 1_000_000, "`n` calls that it takes at once (connections, workers); 0: as many as come")
	cli.Span(fs, &s.handler, "handler", 0, time.Hour, "how long one call takes, as a `time`; 0s: no time")
	cli.Span(fs, &s.wait, "wait", time.Millisecond, longestTolerated, "the longest `time` that anybody may wait")
	fs.Var(&s.pattern, "arrivals", "how callers arrive, as a `pattern`: 80/s, 200@5s, or both: 50/s+200@5s")
	cli.Span(fs, &s.length, "for", time.Second, 30*24*time.Hour, "how long they arrive so, as a `time`")
	fs.StringVar(&s.file, "file", "", "a `file` of arrival times instead, one in a line: RFC 3339, or seconds")
}

func run(s settings, stdout io.Writer) (int, error) {
	var err error
	if s.file != "" {
		s.arrivals, err = readTimes(s.file)
	} else {
		s.arrivals, err = s.pattern.times(s.length)
	}
	if err != nil {
		return cli.Usage, cli.Mistakef("%v", err)
	}
	nd := s.need
	nd.writeInput(stdout)
	p, fits := nd.best()
	if !fits {
		fmt.Fprintf(stdout, "\n%s\n", nd.impossible())
		return cli.Broken, nil
	}
	a := nd.advise(p)
	out, err := nd.simulate(a)
	if err != nil {
		return cli.Broken, err
	}
	wrongs := nd.wrongs(a, out)
	nd.writeAdvice(stdout, a)
	nd.writeOutcome(stdout, a, out)
	for _, w := range wrongs {
		fmt.Fprintln(stdout, "WRONG:", w)
	}
	fmt.Fprintln(stdout)
	nd.writeBursts(stdout, a)
	fmt.Fprintln(stdout)
	nd.writeRules(stdout)
	if len(wrongs) > 0 {
		return cli.Broken, nil
	}
	return cli.OK, nil
}

func (nd need) writeInput(w io.Writer) {
	fmt.Fprintf(w, "The downstream takes %v", nd.limit)
	if nd.slots > 0 {
		fmt.Fprintf(w, ", %d calls at once", nd.slots)
	}
	fmt.Fprintf(w, ", and a call takes %v.\n%d callers arrive, %s a second on average, %d in the fullest second; none may wait longer than %v.\n",
		nd.handler, len(nd.arrivals), number(nd.mean()), nd.crest(time.Second), nd.wait)
}

func (nd need) writeAdvice(w io.Writer, a advice) {
	fmt.Fprint(w, "\nSet:\n\n")
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	for _, l := range nd.lines(a) {
		fmt.Fprintf(t, "\t%s\t%s\t%s\n", l.name, l.value, l.why)
	}
	t.Flush()
	fmt.Fprintf(w, "\n  %s\n", a.code())
}

func (nd need) writeOutcome(w io.Writer, a advice, o outcome) {
	fmt.Fprintf(w, "\nSimulated with these numbers: %d started, %d refused. The longest wait was %v (p99 %v); the fullest %v saw %d starts of %d.",
		len(o.Starts), o.Refused, round(o.Longest()), round(o.Percentile(99)), nd.limit.per, o.fullest, nd.limit.n)
	if nd.handler > 0 {
		fmt.Fprintf(w, " At most %d ran at once", o.atOnce)
		if nd.slots > 0 {
			fmt.Fprintf(w, " of %d", nd.slots)
		}
		fmt.Fprint(w, ".")
	}
	fmt.Fprintln(w)
}
