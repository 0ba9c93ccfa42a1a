// Gate plays the Gate of package queue, and the recipe of Asynq's wiki beside it, against real asynq servers and a
// redis-server of its own for each scenario, and prints a Markdown row for each:
//
//	go -C bench run ./gate [-only 'kill|20,000']
//
// All of it takes about a quarter of an hour. Times depend on the machine, and on who else is on it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"time"
)

func main() {
	if spec := os.Getenv(workerEnv); spec != "" {
		work(spec)
		return
	}
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(1)
	}
}

// A scene is a scenario as one side plays it.
type scene struct {
	name, who string
	play      func(w *world, r *row)
	redis     []string // arguments of redis-server
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("gate", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "a regular expression: only the scenarios whose name, with who plays it, it matches")
	if err := flags.Parse(args); err != nil {
		return err
	}
	pick, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	fmt.Fprintf(stdout, "%s, %s, %s/%s, %d cores, asynq's defaults but for what Configure sets, burst 1.\n\n%s",
		time.Now().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), head)
	missed := 0
	for _, s := range scenes() {
		if !pick.MatchString(s.name + " " + s.who) {
			continue
		}
		fmt.Fprintf(stderr, "%s: %s ...\n", s.name, s.who)
		r, err := s.result()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.print(stdout, s.name)
		if s.who == ours && len(r.missed) > 0 {
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d scenarios missed a target", missed)
	}
	return nil
}

// result plays the scene in a world of its own.
func (s scene) result() (r *row, err error) {
	defer func() {
		if p := recover(); p != nil {
			b, ok := p.(broken)
			if !ok {
				panic(p)
			}
			err = b.error
		}
	}()
	w := newWorld(s.redis...)
	defer w.close()
	r = &row{who: s.who}
	s.play(w, r)
	return r, nil
}
