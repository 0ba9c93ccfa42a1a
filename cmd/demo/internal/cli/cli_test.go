package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEndings(t *testing.T) {
	for _, s := range []struct {
		args   []string
		status int
		err    error
		want   int
		says   string
	}{
		{nil, OK, nil, OK, ""},
		{nil, Interrupted, nil, Interrupted, ""},
		{nil, OK, errors.Join(errors.New("first"), errors.New("second")), Broken, "demo: first\ndemo: second\n"},
		{nil, OK, Mistakef("-o %s: no", "x"), Usage, "demo: -o x: no\n"},
		{[]string{"-n", "11"}, OK, nil, Usage, "demo: invalid value \"11\" for flag -n: must be a whole number from 1 to 10 (-h lists the flags)\n"},
		{[]string{"-d", "5"}, OK, nil, Usage, "demo: invalid value \"5\" for flag -d: must be a time with its unit, like 50ms, from 1ms to 1s (-h lists the flags)\n"},
		{[]string{"-w", "c"}, OK, nil, Usage, "demo: invalid value \"c\" for flag -w: must be one of a, b (-h lists the flags)\n"},
		{[]string{"-a", ":1"}, OK, nil, Usage, "demo: invalid value \":1\" for flag -a: must be host:port, like localhost:6379 (-h lists the flags)\n"},
		{[]string{"more"}, OK, nil, Usage, "demo: argument \"more\": there are flags only (-h lists the flags)\n"},
	} {
		n, d, w, a := 5, time.Second, "a", ""
		c := Command{
			Name: "demo test", About: "\nShows it.", Example: "demo test -n 1",
			Flags: func(fs *flag.FlagSet) {
				Count(fs, &n, "n", 1, 10, "`n` things")
				Span(fs, &d, "d", time.Millisecond, time.Second, "a `time`")
				Choice(fs, &w, "w", []string{"a", "b"}, "a `word`")
				Address(fs, &a, "a", "where")
			},
			Run: func(context.Context, io.Writer, io.Writer) (int, error) { return s.status, s.err },
		}
		var out, errs bytes.Buffer
		require.Equal(t, s.want, c.Main(t.Context(), s.args, &out, &errs), "%v", s.args)
		require.Equal(t, s.says, errs.String())

		out.Reset()
		require.Equal(t, OK, c.Main(t.Context(), []string{"-h"}, &out, &errs))
		require.Contains(t, out.String(), "Usage: demo test [flags]\n\nShows it.\n\nFlags:\n")
		require.Contains(t, out.String(), "  -n n\n    \tn things (default 5)\n")
		require.Contains(t, out.String(), "\nExample:\n  demo test -n 1\n")
	}
}
