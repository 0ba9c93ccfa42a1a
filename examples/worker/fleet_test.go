package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

// reexec makes the test binary the program itself.
const reexec = "WORKER_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(reexec) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// A post is one request that came to the downstream.
type post struct {
	id, tenant string
	at         time.Time
	status     int
}

// A fleet is a Redis, a downstream that notes all that comes, and worker processes.
type fleet struct {
	t     testing.TB
	redis *redistest.Server
	conn  asynq.RedisClientOpt
	insp  *asynq.Inspector
	stub  *stub
	url   string

	mu    sync.Mutex
	posts []post
	hold  func(http.ResponseWriter, *http.Request) // before the stub, if set
}

func newFleet(t testing.TB, quota sluice.Rate) *fleet {
	t.Helper()
	f := &fleet{t: t, redis: redistest.StartServer(t, "--appendonly", "yes", "--appendfsync", "always")}
	f.conn = asynq.RedisClientOpt{Addr: f.redis.Addr}
	f.insp = asynq.NewInspector(f.conn)
	t.Cleanup(func() {
		if t.Failed() {
			info, err := f.insp.GetQueueInfo("default")
			t.Logf("%d posts; queue: %+v %v", len(f.came(0)), info, err)
		}
		_ = f.insp.Close()
	})
	var err error
	f.stub, err = newStub(quota)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fleet) serve(w http.ResponseWriter, r *http.Request) {
	p := post{id: r.Header.Get("Idempotency-Key"), tenant: r.Header.Get("Tenant"), at: time.Now()}
	if f.hold != nil {
		f.hold(w, r)
	}
	answer := httptest.NewRecorder()
	f.stub.ServeHTTP(answer, r)
	p.status = answer.Code
	f.mu.Lock()
	f.posts = append(f.posts, p)
	f.mu.Unlock()
	w.Header().Set("Retry-After", answer.Header().Get("Retry-After"))
	w.WriteHeader(answer.Code)
}

// came returns the posts so far that were answered with status, by time; 0 for all.
func (f *fleet) came(status int) (some []post) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.posts {
		if status == 0 || p.status == status {
			some = append(some, p)
		}
	}
	slices.SortFunc(some, func(a, b post) int { return a.at.Compare(b.at) })
	return some
}

// enqueue puts n jobs into the queue, all due at once: job i is of tenant of(i). It returns their IDs.
func (f *fleet) enqueue(n int, of func(i int) string) (ids []string) {
	f.t.Helper()
	client := asynq.NewClient(f.conn)
	defer func() { _ = client.Close() }()
	for i := range n {
		info, err := client.Enqueue(newTask(of(i), i), asynq.Retention(time.Hour))
		require.NoError(f.t, err)
		ids = append(ids, info.ID)
	}
	return ids
}

func turns(tenants ...string) func(int) string {
	return func(i int) string { return tenants[i%len(tenants)] }
}

// once requires that each job was accepted exactly once and is completed, and that Asynq has counted nothing against any.
func (f *fleet) once(ids []string) {
	f.t.Helper()
	var got []string
	for _, p := range f.came(http.StatusNoContent) {
		got = append(got, p.id)
	}
	require.ElementsMatch(f.t, ids, got, "each job is accepted once")
	f.until("all are completed", func() bool { return f.done() == len(ids) })
	info := f.info()
	require.Zero(f.t, info.Archived+info.Retry+info.Pending+info.Active+info.Scheduled, "%+v", info)
	require.Zero(f.t, info.Failed, "%+v", info)
	done, err := f.insp.ListCompletedTasks("default", asynq.PageSize(len(ids)))
	require.NoError(f.t, err)
	for _, task := range done {
		require.Zero(f.t, task.Retried, "job %s has used a retry: %s", task.ID, task.LastErr)
	}
}

func (f *fleet) info() *asynq.QueueInfo {
	f.t.Helper()
	info, err := f.insp.GetQueueInfo("default")
	require.NoError(f.t, err)
	return info
}

// done is how many jobs are completed; none while Redis knows of no queue.
func (f *fleet) done() int {
	info, err := f.insp.GetQueueInfo("default")
	if err != nil {
		return 0
	}
	return info.Completed
}

func (f *fleet) until(what string, ok func() bool) {
	f.t.Helper()
	until(f.t, what, ok)
}

// until asks again and again, for as long as a busy machine may need.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 40 s: %s", what)
		}
	}
}

// most is the largest excess over burst + rate·w of all windows between two posts.
func most(posts []post, rate sluice.Rate) (excess int) {
	for i := range posts {
		for j := i; j < len(posts); j++ {
			excess = max(excess, j-i+1-burst-int(rate.UnitsIn(posts[j].at.Sub(posts[i].at))))
		}
	}
	return excess
}

func of(posts []post, tenant string) []post {
	return slices.DeleteFunc(slices.Clone(posts), func(p post) bool { return p.tenant != tenant })
}

// A process is a worker of its own.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	addr string // of /metrics and /healthz
	read chan struct{}

	mu   sync.Mutex
	logs []map[string]any
}

// start starts a worker and waits until it says that it works.
func (f *fleet) start(args ...string) *process {
	f.t.Helper()
	args = append([]string{"-redis", "redis://" + f.redis.Addr, "-downstream", f.url, "-http", "127.0.0.1:0"}, args...)
	p := &process{t: f.t, cmd: exec.Command(os.Args[0], args...), read: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), reexec+"=1", "GORACE=atexit_sleep_ms=0") // the race detector's second is not the worker's
	out, err := p.cmd.StderrPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, p.cmd.Start())
	working := make(chan string, 1)
	go p.follow(out, working)
	f.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // nothing happens to one that has ended
		<-p.read
		_ = p.cmd.Wait()
		if f.t.Failed() {
			for _, line := range p.logs {
				f.t.Logf("worker %d: %v", p.cmd.Process.Pid, line)
			}
		}
	})
	select {
	case p.addr = <-working:
	case <-p.read:
		f.t.Fatalf("the worker did not start")
	}
	return p
}

func (p *process) follow(out io.Reader, working chan<- string) {
	defer close(p.read)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := map[string]any{}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			line["msg"] = "not JSON: " + lines.Text()
		}
		if line["msg"] == "working" {
			working <- line["http"].(string)
		}
		p.mu.Lock()
		p.logs = append(p.logs, line)
		p.mu.Unlock()
	}
}

// stop sends SIGTERM and returns the exit status, and how long it took.
func (p *process) stop() (status int, took time.Duration) {
	p.t.Helper()
	began := time.Now()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.read:
	case <-time.After(20 * time.Second):
		p.t.Error("the worker does not end")
		return -1, time.Since(began)
	}
	_ = p.cmd.Wait() // the status is in ProcessState
	return p.cmd.ProcessState.ExitCode(), time.Since(began)
}

// said returns the lines with this msg; with "", all of them.
func (p *process) said(msg string) (some []map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.logs {
		if msg == "" || line["msg"] == msg {
			some = append(some, line)
		}
	}
	return some
}

func (p *process) get(path string) (status int, body string) {
	p.t.Helper()
	resp, err := http.Get(fmt.Sprintf("http://%s%s", p.addr, path))
	require.NoError(p.t, err)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(p.t, err)
	return resp.StatusCode, string(text)
}
