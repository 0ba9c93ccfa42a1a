package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/redistest"
)

const (
	envWork  = "SLUICE_TEST_WORK"
	envOrder = "SLUICE_TEST_ORDER"
)

// workers are what this binary does instead of testing when a test has started it as a process of its own.
var workers = map[string]func() int{"wait": waitAndTell, "gate": gateAndTell}

// An order is what such a process is to do. It prints the time of each start.
type order struct {
	Addr, Name  string
	Rate        sluice.Rate
	Burst       int
	Goroutines  int
	Begin       time.Time
	For         time.Duration
	GiveUp      int // of 100 callers
	Concurrency int // of the gate's worker
	Mixed       bool
}

// spawn starts count processes and returns their starts, each process's in the order of time.
func spawn(t *testing.T, work string, count int, o order) [][]time.Time {
	t.Helper()
	o.Begin = time.Now().Add(1500 * ms)
	text, err := json.Marshal(o)
	require.NoError(t, err)
	starts := make([][]time.Time, count)
	var all sync.WaitGroup
	for i := range count {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envWork+"="+work, envOrder+"="+string(text))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		all.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				if ns, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
					starts[i] = append(starts[i], time.Unix(0, ns))
				} else {
					t.Errorf("process %d says: %s", i, lines.Text())
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			slices.SortFunc(starts[i], time.Time.Compare)
		})
	}
	all.Wait()
	return starts
}

// ordered reads what the process is to do.
func ordered() (order, *redis.Client) {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(envOrder)), &o); err != nil {
		panic(err)
	}
	return o, redis.NewClient(&redis.Options{Addr: o.Addr})
}

func tell(starts []time.Time) int {
	out := bufio.NewWriter(os.Stdout)
	for _, at := range starts {
		_, _ = fmt.Fprintln(out, at.UnixNano())
	}
	if out.Flush() != nil {
		return 1
	}
	return 0
}

// waitAndTell lets goroutines Wait in a loop, some of whom give up.
func waitAndTell() int {
	o, client := ordered()
	l, err := New(client, Config{Name: o.Name, Rate: o.Rate, Burst: o.Burst})
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Until(o.Begin))
	ctx, cancel := context.WithDeadline(context.Background(), o.Begin.Add(o.For))
	defer cancel()
	var mu sync.Mutex
	var starts []time.Time
	var all sync.WaitGroup
	for range o.Goroutines {
		all.Go(func() {
			for ctx.Err() == nil {
				if one(ctx, l, rand.IntN(100) < o.GiveUp) {
					at := time.Now()
					mu.Lock()
					starts = append(starts, at)
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	if l.Close() != nil || l.Health().Outages > 0 {
		fmt.Printf("%+v\n", l.Health())
	}
	return tell(starts)
}

func one(ctx context.Context, l *Limiter, givesUp bool) bool {
	if givesUp {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(rand.N(400*ms), cancel).Stop()
		defer cancel()
	}
	err := l.Wait(ctx, 1)
	if err != nil && ctx.Err() == nil {
		time.Sleep(5 * ms) // not due before the end
	}
	return err == nil
}

// most returns how many of starts, in order, lie within any second.
func most(starts []time.Time) int {
	n, first := 0, 0
	for i, at := range starts {
		for at.Sub(starts[first]) >= time.Second {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// Three processes with twenty callers each share 100/s for ten seconds. Where leavers' turns are lost, 30 % of the rate
// goes with 30 % of the callers; where they are simply given back, seconds hold up to 127.
func TestProcessesShareOneLimit(t *testing.T) {
	t.Parallel()
	server := redistest.StartServer(t)
	for _, c := range []struct {
		giveUp int
		least  float64
	}{{0, 0.99}, {30, 0.98}} {
		t.Run(fmt.Sprintf("%d%% give up", c.giveUp), func(t *testing.T) {
			t.Parallel()
			const burst, rate, seconds = 10, 100, 10
			each := spawn(t, "wait", 3, order{
				Addr: server.Addr, Name: name(), Rate: sluice.PerSecond(rate), Burst: burst,
				Goroutines: 20, For: seconds * time.Second, GiveUp: c.giveUp,
			})
			all := slices.Concat(each...)
			slices.SortFunc(all, time.Time.Compare)
			ideal := burst + rate*seconds
			t.Logf("%d starts of %d (%.2f %%), %d/%d/%d in each process; at most %d in a second",
				len(all), ideal, 100*float64(len(all))/float64(ideal), len(each[0]), len(each[1]), len(each[2]), most(all))
			require.LessOrEqual(t, most(all), rate+burst)
			require.GreaterOrEqual(t, float64(len(all)), c.least*float64(ideal))
			for i := range each {
				require.Greater(t, len(each[i]), ideal/3*2/3, "each process gets its part")
			}
		})
	}
}
