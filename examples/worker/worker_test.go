package main

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

// The main promise: two workers, a queue that is always full, and a downstream that never has to say no.
func TestTheDownstreamNeverRefuses(t *testing.T) {
	t.Parallel()
	const jobs, slots = 950, 10
	f := newFleet(t, sluice.PerSecond(100))
	ids := f.enqueue(jobs, turns("acme", "globex", "guest", "globex", "guest"))
	for range 2 {
		f.start("-rate", "95/s", "-tenants", "acme=20/s,globex=200/s", "-tenant-rate", "200/s", "-concurrency", "10")
	}
	f.until("all jobs have come", func() bool { return len(f.came(0)) >= jobs })
	all := f.came(0)
	took := all[jobs-1].at.Sub(all[0].at)
	t.Logf("%d jobs in %v (ideal %v); most above 95/s %d, acme above 20/s %d", jobs, took,
		sluice.PerSecond(95).TimeFor(jobs-1), most(all, sluice.PerSecond(95)), most(of(all, "acme"), sluice.PerSecond(20)))
	require.Empty(t, f.came(http.StatusTooManyRequests))
	f.once(ids)
	// What a job has waited for its other limit, and what the network and this machine were late.
	require.LessOrEqual(t, most(all, sluice.PerSecond(95)), 2*slots)
	require.LessOrEqual(t, most(of(all, "acme"), sluice.PerSecond(20)), 2*slots)
	require.Less(t, took, 11500*time.Millisecond, "the rate is reached")
}

// A tenant's limit is one for all workers, and no other tenant's.
func TestEachTenantHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sluice.PerSecond(1000))
	ids := f.enqueue(160, turns("acme", "globex", "guest", "acme"))
	for range 2 {
		f.start("-rate", "500/s", "-tenants", "acme=20/s,globex=10/s", "-tenant-rate", "10/s")
	}
	f.until("all jobs have come", func() bool { return len(f.came(0)) >= 160 })
	f.once(ids)
	for tenant, rate := range map[string]sluice.Rate{"acme": sluice.PerSecond(20), "globex": sluice.PerSecond(10), "guest": sluice.PerSecond(10)} {
		posts := of(f.came(0), tenant)
		took := posts[len(posts)-1].at.Sub(posts[0].at)
		t.Logf("%s: %d in %v (ideal %v), most above %v: %d", tenant, len(posts), took, rate.TimeFor(int64(len(posts)-1)), rate, most(posts, rate))
		require.LessOrEqual(t, most(posts, rate), 2, "%s", tenant) // one that was a turn late beside two that were not
		require.Less(t, took, rate.TimeFor(int64(len(posts)-1))*3/2, "%s", tenant)
	}
}

// The quota falls to a fraction while the workers run, and comes back.
func TestA429IsNoFailure(t *testing.T) {
	t.Parallel()
	const slots = 4
	f := newFleet(t, sluice.PerSecond(100))
	ids := f.enqueue(200, turns("acme", "globex"))
	var fleet []*process
	for range 2 {
		fleet = append(fleet, f.start("-rate", "50/s", "-tenant-rate", "50/s", "-concurrency", "4"))
	}
	f.until("it is under way", func() bool { return len(f.came(0)) >= 30 })
	require.NoError(t, f.stub.quota.SetBurst(1))
	require.NoError(t, f.stub.quota.SetRate(sluice.PerSecond(2)))
	f.until("the downstream has refused", func() bool { return len(f.came(http.StatusTooManyRequests)) > 0 })
	require.NoError(t, f.stub.quota.SetRate(sluice.PerSecond(100)))
	require.NoError(t, f.stub.quota.SetBurst(50))
	f.until("all jobs have been accepted", func() bool { return len(f.came(http.StatusNoContent)) >= 200 })

	no := f.came(http.StatusTooManyRequests)
	t.Logf("%d refused", len(no))
	after := 0
	for _, p := range f.came(0) {
		if d := p.at.Sub(no[0].at); d > 0 && d < 950*time.Millisecond {
			after++
		}
	}
	require.LessOrEqual(t, after, 2*slots, "within the Retry-After of a second start only those who had their turn already")
	f.once(ids)
	told := len(fleet[0].said("the downstream wants a rest")) + len(fleet[1].said("the downstream wants a rest"))
	require.Equal(t, len(no), told, "each 429 is logged")
}

// One of two workers is told to stop in the middle of it.
func TestSIGTERMLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sluice.PerSecond(1000))
	ids := f.enqueue(250, turns("acme", "globex", "guest"))
	one := f.start("-rate", "50/s", "-tenants", "acme=10/s", "-tenant-rate", "50/s")
	two := f.start("-rate", "50/s", "-tenants", "acme=10/s", "-tenant-rate", "50/s")
	f.until("it is under way", func() bool { return len(f.came(0)) >= 60 })
	status, took := one.stop()
	left := len(ids) - len(f.came(0))
	require.Zero(t, status)
	require.Less(t, took, 2*time.Second)
	require.Greater(t, left, 50, "the other one has something to do")
	f.until("all jobs have come", func() bool { return len(f.came(0)) >= len(ids) })
	f.once(ids)
	status, _ = two.stop()
	require.Zero(t, status)
	t.Logf("stopped in %v with %d jobs left", took, left)
	for _, line := range append(one.said(""), two.said("")...) {
		require.NotEqual(t, "ERROR", line["level"], "%v", line)
		require.False(t, strings.HasPrefix(line["msg"].(string), "not JSON"), "%v", line)
	}
}

// A post that is under way is waited for, and until it has ended /healthz says why nothing new is taken.
func TestHealthzSaysDraining(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sluice.PerSecond(1000))
	here, release := make(chan struct{}), make(chan struct{})
	f.hold = func(http.ResponseWriter, *http.Request) { close(here); <-release }
	ids := f.enqueue(1, turns("acme"))
	p := f.start()
	<-here
	exited := make(chan int, 1)
	go func() {
		status, _ := p.stop()
		exited <- status
	}()
	f.until("/healthz says draining", func() bool {
		status, body := p.get("/healthz")
		return status == http.StatusServiceUnavailable && body == "draining\n"
	})
	close(release)
	require.Zero(t, <-exited)
	f.once(ids)
}

func TestHealthzFollowsRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sluice.PerSecond(1000))
	p := f.start("-rate", "1000/s", "-tenant-rate", "1000/s")
	ok := func() bool { status, body := p.get("/healthz"); return status == http.StatusOK && body == "ok\n" }
	require.True(t, ok())
	f.redis.Stop()
	f.until("/healthz says that Redis is out", func() bool {
		status, body := p.get("/healthz")
		return status == http.StatusServiceUnavailable && strings.HasPrefix(body, "redis is out: ")
	})
	_, text := p.get("/metrics")
	require.Contains(t, text, `sluice_redis_up{limiter="global"} 0`)
	require.NoError(t, f.redis.Restart())
	f.until("/healthz is content again", ok)
	ids := f.enqueue(20, turns("acme"))
	f.until("all jobs have come", func() bool { return len(f.came(0)) >= 20 })
	f.once(ids)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sluice.PerSecond(1000))
	f.enqueue(9, turns("acme", "guest", "somebody"))
	p := f.start("-tenants", "acme=100/s", "-tenant-rate", "100/s")
	f.until("all jobs are done", func() bool { return f.done() == 9 })
	_, text := p.get("/metrics")
	for _, line := range []string{
		`sluice_gate_started_total{limiter="worker"} 9`,
		`sluice_granted_total{limiter="tenant:acme"} `, // the Gate's places that nobody used are counted too
		`sluice_granted_total{limiter="tenants:other"} `,
		`sluice_wait_seconds_count{limiter="tenant:acme"} `,
		`sluice_redis_up{limiter="global"} 1`,
		`go_goroutines `,
	} {
		require.True(t, strings.Contains(text, "\n"+line), "no %s in\n%s", line, ours(text))
	}
	require.False(t, strings.Contains(text, "somebody"), "a series for each name that comes along:\n%s", ours(text))
}

// ours are the lines of a scrape that are not Go's.
func ours(scrape string) string {
	var lines []string
	for line := range strings.Lines(scrape) {
		if strings.HasPrefix(line, "sluice_") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// What the Spreader has planned is due no faster than the limits, and the workers do it.
func TestProduce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, sluice.PerSecond(1000))
	var out strings.Builder
	args := []string{"-redis", "redis://" + f.redis.Addr, "-produce", "40", "-rate", "20/s", "-tenants", "acme=20/s", "-tenant-rate", "20/s"}
	require.NoError(t, run(context.Background(), args, func(string) string { return "" }, &out, &out))
	require.Contains(t, out.String(), "40 jobs for [acme guest] are in the queue")
	planned, err := f.insp.ListScheduledTasks("default")
	require.NoError(t, err)
	second := map[int64]int{}
	for _, task := range planned {
		second[task.NextProcessAt.Unix()]++
	}
	require.GreaterOrEqual(t, len(second), 2, "two seconds' worth")
	for at, n := range second {
		require.LessOrEqual(t, n, 21, "in second %d", at)
	}
	f.start("-rate", "20/s", "-tenant-rate", "20/s")
	f.until("all jobs have come", func() bool { return len(f.came(0)) >= 40 })
	require.Len(t, f.came(http.StatusNoContent), 40)
}
