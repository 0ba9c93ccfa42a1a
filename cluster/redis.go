package cluster

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice/internal/exact"
)

//go:embed script.lua
var source string

// A script is the text that decides, under the name that Redis gives it.
type script struct{ text, sha string }

func newScript(text string) script {
	sum := sha1.Sum([]byte(text))
	return script{text, hex.EncodeToString(sum[:])}
}

// An ask is what one trip wants: give back, take, pause, in this order.
type ask struct {
	cost  exact.U128 // to take,
	debt  exact.U128 // if there is no more debt than this
	pause uint64     // and no longer pause, in µs
	end   exact.U128 // the end of the debt for which
	back  exact.U128 // so much is given back
	hold  uint64     // µs to pause for
	probe bool       // whether it can be written, too; asks for nothing else
}

// An answer is what Redis says. All but now is as it was before the cost was taken.
type answer struct {
	taken, returned bool
	now             uint64     // µs since 1970, by the clock of that Redis
	debt            exact.U128 // how much is owed from now on, a pause included
	pause           uint64     // µs from now
}

// args returns ask as the script reads it: all as text, since Redis versions differ in how they print numbers. What is
// rarely asked for stands last, and is left out.
func (t *terms) args(a ask) []any {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	cost, costRem := t.down(a.cost)
	debt, debtRem := t.down(a.debt)
	args := []any{
		t.text, t.denText, t.farText,
		number(cost), number(costRem), number(debt), number(debtRem), number(a.pause),
	}
	back, backRem := t.down(a.back)
	switch given := back > 0 || backRem > 0; {
	case a.probe:
		args = append(args, "-1")
	case given || a.hold > 0:
		args = append(args, number(a.hold))
		if given {
			args = append(args, t.name(a.end), number(back), number(backRem))
		}
	}
	return args
}

// read is the inverse of what the script returns.
func (t *terms) read(reply any) (answer, error) {
	values, ok := reply.([]any)
	if !ok || len(values) != 5 {
		return answer{}, fmt.Errorf("unexpected answer %v", reply)
	}
	var n [5]uint64
	for i, v := range values {
		whole, ok := v.(int64)
		if !ok || whole < 0 {
			return answer{}, fmt.Errorf("unexpected answer %v", reply)
		}
		n[i] = uint64(whole)
	}
	return answer{
		taken: n[0]&1 != 0, returned: n[0]&2 != 0,
		now: n[1], debt: t.parts(n[2], n[3]), pause: n[4],
	}, nil
}

// once is a command that go-redis must not repeat: one that has timed out may have been carried out, and would be charged
// twice.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// trip asks Redis. It lasts as long as the client lets it: no ctx ends it, so that an answer is never lost.
func (s script) trip(client redis.UniversalClient, key string, args []any) (any, error) {
	ctx := context.Background()
	run := func(name, script string) (any, error) {
		cmd := once{redis.NewCmd(ctx, append([]any{name, script, "1", key}, args...)...)}
		if err := client.Process(ctx, cmd); err != nil {
			return nil, err
		}
		return cmd.Val(), cmd.Err()
	}
	reply, err := run("evalsha", s.sha)
	if redis.HasErrorPrefix(err, "NOSCRIPT") { // a restart, a promotion, SCRIPT FLUSH: nothing was carried out
		reply, err = run("eval", s.text)
	}
	return reply, err
}

// outages are the answers of a Redis that is there and cannot decide now: a promotion under way, a replica, a full or
// a starting server. In all of them nothing was written.
var outages = []string{
	"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "OOM", "MISCONF", "NOREPLICAS", "BUSY", "MOVED", "ASK",
	"UNBLOCKED", "max number of clients reached",
}

// isOutage says whether Redis cannot be asked. Any other error of Redis (a script that fails, CROSSSLOT, WRONGTYPE, NOAUTH,
// NOPERM) is a mistake that no waiting and no policy mends, and must not be taken for one.
func isOutage(err error) bool {
	var said redis.Error
	if !errors.As(err, &said) {
		return true // the network, a timeout, the pool
	}
	for _, prefix := range outages {
		// Before version 7 a script's own text stands in front of the error.
		if redis.HasErrorPrefix(err, prefix) || strings.Contains(said.Error(), "-"+prefix+" ") {
			return true
		}
	}
	return false
}
