package cluster

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
)

// An Outage says what happens to calls while Redis cannot be asked.
type Outage int

const (
	// FailClosed returns ErrOutage: for limits that somebody else sets.
	FailClosed Outage = iota
	// FailOpen lets everything go at once: for limits that protect ourselves from ourselves.
	FailOpen
	// FailLocal keeps the limit in this process, at its share: Rate and Burst divided by Processes.
	FailLocal
)

func (o Outage) String() string {
	switch o {
	case FailClosed:
		return "FailClosed"
	case FailOpen:
		return "FailOpen"
	case FailLocal:
		return "FailLocal"
	}
	return fmt.Sprintf("Outage(%d)", int(o))
}

// Config is what New needs.
type Config struct {
	// Name is the limit: who shares it, in one Redis, shares the limit. Its key is "sluice:" and Name. Required, at most
	// 512 bytes.
	Name string
	// Rate is how fast units flow, for all processes together. Required.
	Rate sluice.Rate
	// Burst is how many units can go at once; 1 makes a pacer. Required, at least 1.
	Burst int
	// Horizon is the furthest turn that anybody may wait for: who would wait longer is refused at once with ErrMaxWait.
	// Default: one minute.
	Horizon time.Duration
	// Outage says what happens while Redis cannot be asked. Default: FailClosed.
	Outage Outage
	// Processes is how many processes share the limit: FailLocal divides by it. Required with FailLocal.
	Processes int
	// Timeout is how long Redis may take for one answer before that is an outage. Default: 200 ms.
	Timeout time.Duration
}

func invalid(field string, value any, rule string) error {
	return fmt.Errorf("cluster: Config.%s is %v: %s: %w", field, value, rule, sluice.ErrInvalid)
}

const (
	longestName    = 512
	defaultHorizon = time.Minute
	defaultTimeout = 200 * time.Millisecond
)

// checked returns c with its defaults and the terms that it means.
func (c Config) checked() (Config, terms, error) {
	if c.Horizon == 0 {
		c.Horizon = defaultHorizon
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	var err error
	switch {
	case c.Name == "":
		err = invalid("Name", `""`, "must not be empty")
	case len(c.Name) > longestName:
		err = invalid("Name", fmt.Sprintf("%.20q... (%d bytes)", c.Name, len(c.Name)), "must be at most 512 bytes")
	case !c.Rate.Valid():
		err = invalid("Rate", c.Rate, "must be at least 1 unit per at least 1ns")
	case c.Burst < 1:
		err = invalid("Burst", c.Burst, "must be at least 1")
	case c.Horizon < 0 || c.Horizon > longest:
		err = invalid("Horizon", c.Horizon, fmt.Sprintf("must be from 1ns to %v; 0 is one minute", longest))
	case c.Timeout < 0:
		err = invalid("Timeout", c.Timeout, "must be at least 1ns; 0 is 200ms")
	case c.Outage < FailClosed || c.Outage > FailLocal:
		err = invalid("Outage", c.Outage, "must be FailClosed, FailOpen or FailLocal")
	case c.Processes < 0:
		err = invalid("Processes", c.Processes, "must be at least 0")
	case c.Outage == FailLocal && c.Processes == 0:
		err = invalid("Processes", c.Processes, "must be at least 1 with FailLocal, which divides the limit by it")
	case c.Outage == FailLocal && !c.share().Valid():
		err = invalid("Processes", c.Processes, fmt.Sprintf("must leave a share of %v that a Rate can say", c.Rate))
	}
	if err != nil {
		return c, terms{}, err
	}
	t, err := newTerms(c.Rate, c.Burst, c.Horizon)
	return c, t, err
}

// share is this process's part of the rate: the zero Rate if that is too slow to be said.
func (c Config) share() sluice.Rate {
	if c.Rate.IsUnlimited() {
		return c.Rate
	}
	n, period := c.Rate.Fraction()
	if int64(period) > math.MaxInt64/int64(c.Processes) {
		return sluice.Rate{}
	}
	return sluice.Per(n, period*time.Duration(c.Processes))
}

// checkClient finds what would break the limiter's promises in a client of go-redis. Its MaxRetries and
// ContextTimeoutEnabled do no harm: no trip is ever repeated, and no caller waits for the client.
func checkClient(client redis.UniversalClient) error {
	if client == nil || reflect.ValueOf(client).Kind() == reflect.Pointer && reflect.ValueOf(client).IsNil() {
		return fmt.Errorf("cluster: client is nil: must be a Redis client: %w", sluice.ErrInvalid)
	}
	var read time.Duration
	switch c := client.(type) {
	case *redis.Client:
		read = c.Options().ReadTimeout
	case *redis.ClusterClient:
		read = c.Options().ReadTimeout
	case *redis.Ring:
		read = c.Options().ReadTimeout
	default:
		return nil // somebody's wrapper: cannot be asked
	}
	if read <= 0 {
		return fmt.Errorf("cluster: the client's ReadTimeout is %v, none: must be positive, or a connection that dies silently would never be given up: %w",
			read, sluice.ErrInvalid)
	}
	return nil
}
