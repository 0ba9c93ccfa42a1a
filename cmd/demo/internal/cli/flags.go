package cli

import (
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/fadf4e53/sluice"
)

// Count declares a flag that is a whole number from least to most. flag.Int would say "parse error" of 10.5 and nothing
// of -3.
func Count(fs *flag.FlagSet, n *int, name string, least, most int, usage string) {
	fs.Var(&count{n, least, most}, name, usage)
}

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

// Span declares a flag that is a duration from least to most.
func Span(fs *flag.FlagSet, d *time.Duration, name string, least, most time.Duration, usage string) {
	fs.Var(&span{d, least, most}, name, usage)
}

type span struct {
	d        *time.Duration
	min, max time.Duration
}

func (s *span) String() string {
	if s.d == nil {
		return ""
	}
	return s.d.String()
}

func (s *span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < s.min || d > s.max {
		return fmt.Errorf("must be a time with its unit, like 50ms, from %v to %v", s.min, s.max)
	}
	*s.d = d
	return nil
}

// Choice declares a flag that is one of the given words.
func Choice(fs *flag.FlagSet, s *string, name string, words []string, usage string) {
	fs.Var(&choice{s, words}, name, usage)
}

type choice struct {
	s     *string
	words []string
}

func (c *choice) String() string {
	if c.s == nil {
		return ""
	}
	return *c.s
}

func (c *choice) Set(text string) error {
	for _, w := range c.words {
		if w == text {
			*c.s = text
			return nil
		}
	}
	return fmt.Errorf("must be one of %s", strings.Join(c.words, ", "))
}

// Rate declares a flag that is a sluice.Rate.
func Rate(fs *flag.FlagSet, r *sluice.Rate, name, usage string) {
	fs.TextVar(r, name, *r, usage)
}

// Address declares a flag that is host:port.
func Address(fs *flag.FlagSet, s *string, name, usage string) {
	fs.Var((*address)(s), name, usage)
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
