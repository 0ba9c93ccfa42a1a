// Package cli is what the demo's subcommands have in common: how they read their flags, explain themselves and end.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// What a command exits with.
const (
	OK          = 0
	Broken      = 1 // what was to be shown did not hold, or could not be shown
	Usage       = 2
	Interrupted = 130
)

// A Command is one subcommand.
type Command struct {
	Name    string // what is typed: "demo compare"
	About   string // what is shown, for somebody who has never heard of it
	Example string // one line that can be typed
	// Flags declares the flags; their defaults are what they hold afterwards.
	Flags func(fs *flag.FlagSet)
	// Run does it. An error is for what kept it from being shown.
	Run func(ctx context.Context, stdout, stderr io.Writer) (status int, err error)
}

// Main reads args and runs the command, or says in one line what is wrong with them.
func (c Command) Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := c.flagSet()
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.Help(stdout)
		return OK
	case err == nil && fs.NArg() > 0:
		err = fmt.Errorf("argument %q: there are flags only", fs.Arg(0))
	}
	if err != nil {
		fmt.Fprintf(stderr, "demo: %v (-h lists the flags)\n", err)
		return Usage
	}
	status, err := c.Run(ctx, stdout, stderr)
	if err == nil {
		return status
	}
	for line := range strings.Lines(err.Error()) { // one for each error that was joined
		fmt.Fprintf(stderr, "demo: %s\n", strings.TrimSuffix(line, "\n"))
	}
	var mistake *Mistake
	if errors.As(err, &mistake) {
		return Usage
	}
	return Broken
}

// Help explains the command.
func (c Command) Help(w io.Writer) {
	fs := c.flagSet()
	fs.SetOutput(w)
	fmt.Fprintf(w, "Usage: %s [flags]\n\n%s\n\nFlags:\n", c.Name, strings.TrimSpace(c.About))
	fs.PrintDefaults()
	fmt.Fprintf(w, "\nExample:\n  %s\n", c.Example)
}

func (c Command) flagSet() *flag.FlagSet {
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // Main says it, in one line
	fs.Usage = func() {}
	c.Flags(fs)
	return fs
}

// A Mistake is an error in what was typed that no flag can see alone.
type Mistake struct{ text string }

func (m *Mistake) Error() string { return m.text }

// Mistakef returns a Mistake.
func Mistakef(format string, args ...any) error { return &Mistake{fmt.Sprintf(format, args...)} }
