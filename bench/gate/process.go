package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
)

// workerEnv makes this program a worker: it is started again by itself, to be killed.
const workerEnv = "SLUICE_GATE_WORKER"

// A spec is what a worker process is to be.
type spec struct {
	Addr    string
	Rate    int64 // a second, of tasks of type a
	Slots   int
	Cluster bool // one limit for all processes
}

type process struct{ cmd *exec.Cmd }

// process starts a worker in a process of its own, whose events come over its standard output.
func (w *world) process(s spec) *process {
	s.Addr = w.server.addr
	text, err := json.Marshal(s)
	check(err)
	self, err := os.Executable()
	check(err)
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), workerEnv+"="+string(text)), os.Stderr
	out, err := cmd.StdoutPipe()
	check(err)
	if w.begun.IsZero() {
		check(w.rdb.ConfigResetStat(context.Background()).Err())
		w.begun = time.Now()
	}
	check(cmd.Start())
	p := &process{cmd}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for d := json.NewDecoder(out); ; {
			var e event
			if err := d.Decode(&e); err != nil {
				return // io.EOF: it has ended
			}
			w.add(e)
		}
	}()
	w.ends = append(w.ends, func() { p.kill(); <-read })
	return p
}

// kill is kill -9; again is a no-op.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// poke makes who waits for the ledger look again.
func (l *ledger) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// work is the worker process: it ends by being killed, or when nobody reads it any more.
func work(text string) {
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	w := &world{ledger: newLedger(), redis: asynq.RedisClientOpt{Addr: s.Addr}}
	w.rdb = redis.NewClient(&redis.Options{Addr: s.Addr})
	tell := teller(os.Stdout)
	var lim sluice.Limiter
	if s.Cluster {
		l, err := cluster.New(w.rdb, cluster.Config{Name: "gate", Rate: sluice.PerSecond(s.Rate), Burst: 1})
		if err != nil {
			panic(err)
		}
		lim = l
	} else {
		lim = limit(sluice.PerSecond(s.Rate))
	}
	w.sink = tell
	g := w.gate(w.routed(map[string]sluice.Limiter{"a": lim}))
	srv := asynq.NewServer(w.redis, g.Configure(w.failures(asynq.Config{Concurrency: s.Slots, LogLevel: asynq.FatalLevel})))
	if err := srv.Start(g.Middleware(w.handler(nil))); err != nil {
		panic(err)
	}
	select {}
}

// teller writes events, whole ones, to out.
func teller(out io.Writer) func(event) {
	var mu sync.Mutex
	enc := json.NewEncoder(out)
	return func(e event) {
		mu.Lock()
		defer mu.Unlock()
		if enc.Encode(e) != nil {
			os.Exit(1)
		}
	}
}
