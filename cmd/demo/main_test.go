package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

func call(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = run(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

// Without a command, with flags or none, it is the queue: what was typed before there were commands still works.
func TestQueueIsTheDefault(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{nil, {"-rate", "20/s"}, {"queue", "-rate", "20/s"}} {
		status, out, errs := call(ctx, args...)
		require.Equal(t, cli.Interrupted, status, "%v: %s", args, errs)
		require.Contains(t, out, "400 limited jobs", "%v", args)
	}
	status, _, errs := call(ctx, "-speed=1")
	require.Equal(t, cli.Usage, status)
	require.Contains(t, errs, "-speed")
}

// Each command's -h says what is shown, lists its flags and gives a line to type.
func TestHelp(t *testing.T) {
	_, all, _ := call(t.Context(), "-h")
	require.Contains(t, all, "Usage: demo [command] [flags]")
	require.Contains(t, all, "(default 50/s)", "the default command's flags are there too")
	for _, e := range commands() {
		require.Contains(t, all, "demo "+e.name+" ")
		status, out, errs := call(t.Context(), e.name, "-h")
		require.Equal(t, cli.OK, status, e.name)
		require.Empty(t, errs)
		require.Contains(t, out, "Usage: demo "+e.name+" [flags]")
		require.Contains(t, out, "Flags:\n  -")
		require.Contains(t, out, "(default ", e.name)
		require.Contains(t, out, "Example:\n  demo "+e.name)
	}
}

func TestUnknownCommand(t *testing.T) {
	status, out, errs := call(t.Context(), "swim")
	require.Equal(t, cli.Usage, status)
	require.Empty(t, out)
	require.Equal(t, "demo: there is no command \"swim\"; demo -h lists them\n", errs)
}
