package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
)

// errConfig is what is wrong with a configuration. The error that wraps it names the setting, its value and the rule.
var errConfig = errors.New("worker -h explains each setting")

type config struct {
	redis       asynq.RedisConnOpt
	rate        sluice.Rate // of all tenants and all workers together
	tenants     rates
	tenantRate  sluice.Rate // of each tenant that is not in tenants
	downstream  string
	timeout     time.Duration
	concurrency int
	http        string

	produce int

	stub  string
	quota sluice.Rate
}

// define is the one list of settings: flags, environment and -h are made of it.
func define(c *config) (fs *flag.FlagSet, redisURL *string) {
	fs = flag.NewFlagSet("worker", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	redisURL = fs.String("redis", "redis://127.0.0.1:6379", "`URL` of the Redis that holds the queue and the limits")
	fs.TextVar(&c.rate, "rate", sluice.PerSecond(45), "`rate` of all jobs, of all workers together: somewhat below the downstream's quota")
	fs.Var(&c.tenants, "tenants", "`rates` of single tenants, such as acme=20/s,globex=300/min")
	fs.TextVar(&c.tenantRate, "tenant-rate", sluice.PerSecond(10), "`rate` of each tenant that -tenants does not name")
	fs.StringVar(&c.downstream, "downstream", "http://127.0.0.1:9000", "`URL` to which each job is posted")
	fs.DurationVar(&c.timeout, "timeout", 5*time.Second, "longest `time` that one post may take; a stop waits as long for those under way")
	fs.IntVar(&c.concurrency, "concurrency", 10, "`jobs` in hand at once: at least 4, and one more for every seven that this worker starts a second")
	fs.StringVar(&c.http, "http", "127.0.0.1:8080", "`address` of /metrics and /healthz")
	fs.IntVar(&c.produce, "produce", 0, "put `N` jobs into the queue, spread at the same rates, and exit")
	fs.StringVar(&c.stub, "stub", "", "be a downstream at this `address` instead, for trying out")
	fs.TextVar(&c.quota, "quota", sluice.PerSecond(50), "`rate` above which the stub answers 429")
	return fs, redisURL
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "WORKER_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// configure reads the environment, and then the flags, which win.
func configure(args []string, env func(string) string) (config, error) {
	var c config
	fs, redisURL := define(&c)
	var errs []error
	fs.VisitAll(func(f *flag.Flag) {
		if text := env(variable(f.Name)); text != "" {
			if err := f.Value.Set(text); err != nil {
				errs = append(errs, fmt.Errorf("%s=%q: %w", variable(f.Name), text, err))
			}
		}
	})
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return c, err
		}
		errs = append(errs, err)
	}
	var err error
	if c.redis, err = asynq.ParseRedisURI(*redisURL); err != nil {
		// Its text may hold a password; the parser's words do not repeat it.
		errs = append(errs, errors.New("-redis (WORKER_REDIS): must be a URL such as redis://:password@host:6379/0, rediss:// or redis-sentinel://"))
	}
	if errs = append(errs, c.check(fs.Args())...); len(errs) > 0 {
		return c, fmt.Errorf("%w\n%w", errors.Join(errs...), errConfig)
	}
	return c, nil
}

func (c config) check(rest []string) (errs []error) {
	rule := func(ok bool, flag string, value any, must string) {
		if !ok {
			errs = append(errs, fmt.Errorf("-%s (%s) %v: must be %s", flag, variable(flag), value, must))
		}
	}
	u, err := url.Parse(c.downstream)
	rule(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"), "downstream", c.downstream, "an http or https URL")
	rule(c.timeout > 0, "timeout", c.timeout, "more than 0")
	rule(c.concurrency >= 4, "concurrency", c.concurrency, "at least 4")
	rule(c.produce >= 0, "produce", c.produce, "at least 0")
	if len(rest) > 0 {
		errs = append(errs, fmt.Errorf("%q: must be a flag; there are no other arguments", rest[0]))
	}
	return errs
}

// rateOf is the rate of one tenant.
func (c config) rateOf(tenant string) sluice.Rate {
	if r, ok := c.tenants[tenant]; ok {
		return r
	}
	return c.tenantRate
}

// rates are written as name=rate,name=rate.
type rates map[string]sluice.Rate

func (r *rates) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*r)) {
		parts = append(parts, name+"="+(*r)[name].String())
	}
	return strings.Join(parts, ",")
}

func (r *rates) Set(text string) error {
	all := rates{} // a flag replaces what the environment said; it does not add to it
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" {
			return fmt.Errorf("%q: must be name=rate", part)
		}
		if _, twice := all[name]; twice {
			return fmt.Errorf("%q: must be named once", name)
		}
		rate, err := sluice.ParseRate(value)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all[name] = rate
	}
	*r = all
	return nil
}
