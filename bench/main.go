// Bench measures sluice beside other limiters, in one process, interleaved, and prints the medians as Markdown:
//
//	go -C bench run . [-rounds 5] [-only 'loop|Try']
//
// Times depend on the machine, and on who else is on it: read the ratios of one run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := flags.Int("rounds", 5, "rounds of each measurement; the median counts")
	only := flags.String("only", "", "a regular expression: only the measurements whose name it matches")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds is %d: must be at least 1", *rounds)
	}
	pick, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	fmt.Fprintf(stdout, "%s, %s, %s/%s, %d cores, medians of %d rounds, interleaved.\n",
		time.Now().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), *rounds)
	for _, s := range scenes() {
		if pick.MatchString(s.name) {
			fmt.Fprintf(stderr, "%s ...\n", s.name)
			report(stdout, s, *rounds)
		}
	}
	return nil
}

// clockPeer is the least that anybody can pay: one look at the clock.
var clockPeer = peer{name: "the bare clock", make: func(int, int) subject {
	base := time.Now()
	return subject{wait: func(context.Context) error { _ = time.Since(base); return nil }}
}}

func report(w io.Writer, s scene, rounds int) {
	who := peers
	if s.name == "Wait with a token free" {
		who = append([]peer{clockPeer}, peers...)
	}
	got := s.play(who, rounds)
	fmt.Fprintf(w, "\n### %s\n\n%s\n\n| | %s |\n|---|%s\n", s.name, s.what,
		strings.Join(s.columns, " | "), strings.Repeat("---:|", len(s.columns)))
	for i, p := range who {
		fmt.Fprintf(w, "| %s |", p.name)
		for c := range s.columns {
			if len(got[i][c]) == 0 || math.IsNaN(got[i][c].median()) {
				fmt.Fprint(w, " – |")
				continue
			}
			fmt.Fprintf(w, " "+s.format[c]+" |", got[i][c].median())
		}
		fmt.Fprintln(w)
	}
}

// group writes n with commas.
func group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
