package main

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

func from(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFlagBeatsEnvironmentBeatsDefault(t *testing.T) {
	t.Parallel()
	c, err := configure(nil, from(nil))
	require.NoError(t, err)
	require.Equal(t, sluice.PerSecond(45), c.rate)
	require.Equal(t, asynq.RedisClientOpt{Addr: "127.0.0.1:6379"}, c.redis)

	vars := map[string]string{
		"WORKER_RATE": "60/min", "WORKER_TENANTS": "acme=5/s,initech=1/min", "WORKER_TENANT_RATE": "3/s",
		"WORKER_REDIS": "redis://:pw@r:1/2", "WORKER_TIMEOUT": "2s", "WORKER_CONCURRENCY": "",
	}
	c, err = configure([]string{"-rate", "50/s", "-tenants", "acme=20/s, globex=unlimited"}, from(vars))
	require.NoError(t, err)
	require.Equal(t, sluice.PerSecond(50), c.rate, "the flag")
	require.Equal(t, asynq.RedisClientOpt{Addr: "r:1", Password: "pw", DB: 2}, c.redis, "the environment")
	require.Equal(t, 2*time.Second, c.timeout)
	require.Equal(t, 10, c.concurrency, "an empty variable is none")
	require.Equal(t, rates{"acme": sluice.PerSecond(20), "globex": sluice.Unlimited}, c.tenants, "a flag replaces, and adds nothing")
	require.Equal(t, sluice.PerSecond(20), c.rateOf("acme"))
	require.Equal(t, sluice.PerSecond(3), c.rateOf("initech"))
}

// What is wrong is named by its setting and value, with the rule; all of it at once; and the exit status is 2.
func TestBadSettingsAreNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args string
		vars map[string]string
		want []string
	}{
		{"-rate fast", nil, []string{`"fast"`, "-rate", `like "50/s"`}},
		{"-rate 0/s", nil, []string{`"0/s"`, "-rate", "at least 1"}},
		{"", map[string]string{"WORKER_QUOTA": "many"}, []string{`WORKER_QUOTA="many"`, `like "50/s"`}},
		{"-tenants acme", nil, []string{`"acme"`, "-tenants", "must be name=rate"}},
		{"-tenants =5/s", nil, []string{`"=5/s"`, "must be name=rate"}},
		{"-tenants a=5/s,a=6/s", nil, []string{`"a"`, "must be named once"}},
		{"-tenants a=5", nil, []string{"-tenants", `a: `, `"5"`}},
		{"-downstream ftp://x", nil, []string{"-downstream (WORKER_DOWNSTREAM) ftp://x", "must be an http or https URL"}},
		{"-timeout -1s", nil, []string{"-timeout (WORKER_TIMEOUT) -1s", "must be more than 0"}},
		{"-concurrency 3", nil, []string{"-concurrency (WORKER_CONCURRENCY) 3", "must be at least 4"}},
		{"-produce -1", nil, []string{"-produce (WORKER_PRODUCE) -1", "must be at least 0"}},
		{"-redis http://:secret@h", nil, []string{"-redis (WORKER_REDIS)", "must be a URL such as redis://"}},
		{"-nonsense", nil, []string{"-nonsense"}},
		{"please", nil, []string{`"please"`, "must be a flag"}},
		{"-concurrency 0 -timeout 0s", map[string]string{"WORKER_RATE": "x"}, []string{"-concurrency", "-timeout", "WORKER_RATE"}},
	} {
		var out strings.Builder
		err := run(context.Background(), strings.Fields(c.args), from(c.vars), &out, &out)
		require.Error(t, err, "%s %v", c.args, c.vars)
		require.Equal(t, 2, status(err), "%v", err)
		for _, want := range append(c.want, "worker -h") {
			require.Contains(t, err.Error(), want, "%s %v", c.args, c.vars)
		}
		require.NotContains(t, err.Error(), "secret")
		require.Empty(t, out.String(), "it is told once, by main")
	}
}

func TestHelpTeaches(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, run(context.Background(), []string{"-h"}, from(nil), &out, &out))
	for _, want := range []string{"-stub 127.0.0.1:9000", "WORKER_TENANT_RATE", "-tenants rates", "acme=20/s,globex=300/min", "(default 45/s)", "exit status"} {
		require.Contains(t, out.String(), want)
	}
}

// The README's table has each setting, with its variable and its default.
func TestREADMEHasEverySetting(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	fs, _ := define(&config{})
	fs.VisitAll(func(f *flag.Flag) {
		require.Contains(t, string(text), "`-"+f.Name+"`")
		require.Contains(t, string(text), "`"+variable(f.Name)+"`")
		if f.DefValue != "" && f.DefValue != "0" {
			require.Contains(t, string(text), "`"+f.DefValue+"`", "default of -%s", f.Name)
		}
	})
}

func TestWhatCannotRunIsStatus1(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(context.Background(), []string{"-stub", "256.0.0.1:1"}, from(nil), &out, &out)
	require.Equal(t, 1, status(err), "%v", err)
	err = run(context.Background(), []string{"-http", "256.0.0.1:1"}, from(nil), &out, &out)
	require.Equal(t, 1, status(err), "%v", err)
	require.Zero(t, status(nil))
}
