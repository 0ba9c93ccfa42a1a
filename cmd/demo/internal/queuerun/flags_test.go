package queuerun

import (
	"flag"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

func parse(t *testing.T, args ...string) settings {
	t.Helper()
	var s settings
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags(fs, &s)
	require.NoError(t, fs.Parse(args))
	return s
}

func TestFlags(t *testing.T) {
	require.Equal(t, settings{rate: sluice.PerSecond(50), burst: 10, jobs: 400, free: 400, concurrency: 20}, parse(t))
	require.Equal(t, settings{redis: "[::1]:6379", rate: sluice.PerSecond(5), burst: 1, jobs: 7, concurrency: 3},
		parse(t, "-rate", "10/2s", "-burst=1", "-jobs", "7", "-free", "0", "-concurrency", "3", "-redis", "[::1]:6379"))
}

func TestBadFlags(t *testing.T) {
	const whole = "must be a whole number from "
	for _, s := range []struct{ flag, value, rule string }{
		{"-rate", "50", "must be units per time"},
		{"-rate", "0/s", "must be at least 1"},
		{"-rate", "5/fortnight", "must be a unit"},
		{"-burst", "0", whole + "1 to 1000000"},
		{"-burst", "2.5", whole + "1 to 1000000"},
		{"-jobs", "0", whole + "1 to 100000"},
		{"-jobs", "many", whole + "1 to 100000"},
		{"-free", "-1", whole + "0 to 100000"},
		{"-free", "99999999999999999999", whole + "0 to 100000"},
		{"-concurrency", "0", whole + "1 to 1000"},
		{"-redis", "localhost", "must be host:port"},
		{"-redis", ":6379", "must be host:port"},
		{"-redis", "localhost:redis", whole + "1 to 65535"},
		{"-redis", "localhost:65536", whole + "1 to 65535"},
	} {
		status, out, errs := call(t.Context(), s.flag+"="+s.value)
		require.Equal(t, cli.Usage, status, "%s %s", s.flag, s.value)
		require.Empty(t, out)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
		require.Contains(t, errs, "flag "+s.flag+": ")
		require.Contains(t, errs, `"`+s.value+`"`)
		require.Contains(t, errs, s.rule)
	}

	status, _, errs := call(t.Context(), "-rate=50/s", "fast")
	require.Equal(t, cli.Usage, status)
	require.Contains(t, errs, `argument "fast": there are flags only`)

	status, _, errs = call(t.Context(), "-speed=1")
	require.Equal(t, cli.Usage, status)
	require.Contains(t, errs, "-speed")
}

func TestHelp(t *testing.T) {
	status, out, errs := call(t.Context(), "-h")
	require.Equal(t, cli.OK, status)
	require.Empty(t, errs)
	for _, name := range []string{"-rate", "-burst", "-jobs", "-free", "-concurrency", "-redis", "(default 50/s)", "(default 400)"} {
		require.Contains(t, out, name)
	}
}
