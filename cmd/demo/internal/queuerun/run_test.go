package queuerun

import (
	"bytes"
	"context"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// silent keeps go-redis quiet, as main does.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	// go-redis, once it cannot connect, looks once a second whether it can, and whether its pool is closed: the one that
	// TestRedisGoesAway leaves ends within that second.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// call runs the program.
func call(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = Command().Main(ctx, args, &out, &err)
	return status, out.String(), err.String()
}

// figures reads the table's row of this kind.
func figures(t *testing.T, out, kind string) map[string]string {
	t.Helper()
	columns := regexp.MustCompile(`\s{2,}`)
	var header []string
	for line := range strings.Lines(out) {
		cells := columns.Split(strings.TrimSpace(line), -1)
		if cells[0] == "jobs" {
			header = cells
		}
		if header == nil || !strings.HasSuffix(cells[0], " "+kind) || len(cells) != len(header) {
			continue
		}
		row := make(map[string]string)
		for i, name := range header {
			row[name] = cells[i]
		}
		return row
	}
	require.Fail(t, "no table row of "+kind, out)
	return nil
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	status, out, errs := call(t.Context(), "-jobs", "60", "-free", "40", "-rate", "40/s", "-burst", "5")
	require.Equal(t, cli.OK, status, "%s%s", out, errs)
	require.Empty(t, errs, "neither a bar nor a log where nobody looks")

	intro := strings.Split(out, "\n")[:2]
	require.Contains(t, intro[0], "60 limited jobs (40/s, burst 5) and, behind them, 40 free ones")
	require.Contains(t, intro[0], "an embedded Redis")
	require.Contains(t, intro[1], "cannot take less than 1.38s") // 55 at 40/s

	row := figures(t, out, limited)
	require.Equal(t, "60 limited", row["jobs"])
	require.Equal(t, "60", row["done"])
	for _, name := range []string{"failed", "archived", "left", "lost"} {
		require.Equal(t, "0", row[name], name)
	}
	require.Equal(t, "45", row["allowed"])
	require.Contains(t, row["ideal"], "1.38s (x ")

	row = figures(t, out, free)
	require.Equal(t, "40", row["done"])
	require.Equal(t, "0", row["deferred"])
	require.Equal(t, "-", row["allowed"])
	require.Contains(t, out, "every job was done")
}

func TestUnlimitedRate(t *testing.T) {
	t.Parallel()
	status, out, errs := call(t.Context(), "-jobs", "30", "-free", "0", "-rate", "unlimited")
	require.Equal(t, cli.OK, status, "%s%s", out, errs)
	row := figures(t, out, limited)
	require.Equal(t, "30", row["done"])
	require.Equal(t, "-", row["allowed"])
	require.Equal(t, "-", row["ideal"])
	require.Contains(t, out, "the limit itself takes no time that could be seen.")
	require.NotContains(t, out, free, "there are none, so nothing is said of them")
}

// A limit whose ideal time is below what can be seen is not held against it: "0s (x 2363055.70)" told nobody anything.
func TestRateBeyondMeasure(t *testing.T) {
	t.Parallel()
	status, out, errs := call(t.Context(), "-jobs", "30", "-free", "10", "-rate", "1000000000/s")
	require.Equal(t, cli.OK, status, "%s%s", out, errs)
	require.Equal(t, "below 10ms", figures(t, out, limited)["ideal"])
	require.Contains(t, out, "the limit itself takes no time that could be seen, and the free ones must not wait for them.")
	require.NotContains(t, out, "(x ")
}

// A run on somebody's Redis, even an interrupted one, touches nothing there and leaves nothing behind.
func TestRealRedis(t *testing.T) {
	t.Parallel()
	addr := redistest.Start(t)
	foreign := asynq.NewClient(asynq.RedisClientOpt{Addr: addr})
	t.Cleanup(func() { foreign.Close() })
	_, err := foreign.Enqueue(asynq.NewTask(limited, nil), asynq.TaskID("theirs"))
	require.NoError(t, err)
	before := keys(t, addr)

	status, out, errs := call(t.Context(), "-redis", addr, "-jobs", "40", "-free", "20", "-rate", "40/s")
	require.Equal(t, cli.OK, status, "%s%s", out, errs)
	require.Contains(t, out, "the Redis at "+addr)
	require.Equal(t, "40", figures(t, out, limited)["done"])
	require.Equal(t, "20", figures(t, out, free)["done"])
	require.Equal(t, before, keys(t, addr))

	ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	status, out, errs = call(ctx, "-redis", addr, "-rate", "1/s")
	require.Equal(t, cli.Interrupted, status, "%s%s", out, errs)
	require.Equal(t, before, keys(t, addr))
}

func keys(t *testing.T, addr string) []string {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	found, err := c.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	found = append(found, c.SMembers(t.Context(), "asynq:queues").Val()...)
	slices.Sort(found)
	return found
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	// At this rate the run takes 47 s: whenever the interrupt comes, it is in the middle.
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	status, out, errs := call(ctx, "-jobs", "50", "-free", "10", "-rate", "1/s", "-burst", "3")
	require.Equal(t, cli.Interrupted, status, "%s%s", out, errs)

	left := regexp.MustCompile(`Left in the queue: (\d+) pending, (\d+) scheduled, (\d+) retry\.`).FindStringSubmatch(out)
	require.NotNil(t, left, out)
	sum := number(t, left[1]) + number(t, left[2]) + number(t, left[3])
	lim, fr := figures(t, out, limited), figures(t, out, free)
	require.Equal(t, number(t, lim["left"])+number(t, fr["left"]), sum)
	unasked := 0 // on a slow machine the interrupt comes before all are in the queue
	if m := regexp.MustCompile(`Not enqueued any more: (\d+)\.`).FindStringSubmatch(out); m != nil {
		unasked = number(t, m[1])
	}
	require.Equal(t, 60, unasked+sum+number(t, lim["done"])+number(t, fr["done"]), out)
	require.Equal(t, "0", lim["lost"])
	require.Contains(t, out, "nothing was lost")
}

func TestInterruptBeforeTheFirstJob(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	status, out, errs := call(ctx, "-jobs", "50", "-free", "10")
	require.Equal(t, cli.Interrupted, status, "%s%s", out, errs)
	require.Contains(t, out, "Left in the queue: 0 pending, 0 scheduled, 0 retry. Not enqueued any more: 60.")
}

// Whoever takes jobs out of the queue behind the demo's back is found out: lost is measured.
func TestLost(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	thief := asynq.NewInspector(asynq.RedisClientOpt{Addr: m.Addr()})
	defer thief.Close()
	stolen := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { stolen <- steal(ctx, thief, 2) }()

	status, out, errs := call(t.Context(), "-redis", m.Addr(), "-jobs", "40", "-free", "0", "-rate", "20/s", "-burst", "1")
	cancel()
	require.Equal(t, 2, <-stolen)
	require.Equal(t, cli.Broken, status, "%s%s", out, errs)
	row := figures(t, out, limited)
	require.Equal(t, "38", row["done"])
	require.Equal(t, "2", row["lost"])
	require.Contains(t, out, "WRONG: limited jobs: 2 lost")
	require.NotContains(t, out, "every job was done")
}

// steal deletes n of the jobs that stand last.
func steal(ctx context.Context, in *asynq.Inspector, n int) int {
	done := 0
	for i := 39; done < n && ctx.Err() == nil; {
		queues, _ := in.Queues()
		for _, q := range queues {
			if in.DeleteTask(q, taskID(limited, i)) == nil { // not while it is active
				done++
				i--
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return done
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := l.Addr().String()
	require.NoError(t, l.Close())

	status, out, errs := call(t.Context(), "-redis", addr)
	require.Equal(t, cli.Broken, status)
	require.Empty(t, out)
	require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	require.Contains(t, errs, "demo: -redis "+addr+": must be a Redis that answers: ")
	require.Contains(t, errs, "connection refused")
}

// A Redis that goes away is given up, not waited for.
func TestRedisGoesAway(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	stop := time.AfterFunc(time.Second, m.Close)
	defer stop.Stop()
	status, _, errs := call(t.Context(), "-redis", m.Addr(), "-jobs", "100", "-free", "0", "-rate", "1/s")
	require.Equal(t, cli.Broken, status)
	require.Contains(t, errs, "demo: no answer from Redis for ")
	require.Contains(t, errs, "demo: the queue's books cannot be read: ")
}
