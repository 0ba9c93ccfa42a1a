package queue

import (
	"context"
	"runtime"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice/internal/isnil"
)

const (
	checkInterval = 50 * time.Millisecond // of an idle worker; asynq's own second would come on top of every return
	calmInterval  = 4 * checkInterval     // the same at most, where nothing is called back and the slots hold much work
	tick          = time.Second           // of the forwarder; a tick of 50 ms would cost a Redis command for every task
)

// A server is what the Gate knows of one asynq.Server.
type server struct {
	slots   int           // its Concurrency
	waiting int           // how many of them wait in place; guarded by Gate.mu
	running int           // how many of them are in their handlers; guarded by Gate.mu
	streak  streak        // guarded by Gate.mu
	calls   chan struct{} // one for each task that is being called back, so that those cannot take all slots either
}

// mayWait is how many slots may wait already where a fresh task still does, if work is mixed: a quarter. Half may be
// taken by tasks that were called back, so that a quarter stays free for other work.
func (s *server) mayWait() int { return s.slots / 4 }

// mayHost is how many may wait where one still does that another process has called: three quarters.
func (s *server) mayHost() int { return max(1, s.slots*3/4) }

type serverKey struct{ gate *Gate }

// Configure returns cfg set up so that a deferral is not a failure, costs no retry, is not told to the ErrorHandler
// and comes back on time: IsFailure, RetryDelayFunc and ErrorHandler are wrapped, TaskCheckInterval becomes 50 ms and
// DelayedTaskCheckInterval 1 s unless they are shorter, and BaseContext gets a value by which the Gate knows the server.
// With Config.Limiter and no Redis TaskCheckInterval is up to 200 ms, an eighth of the work that waits in the slots: looking
// costs Redis three commands.
// The caller's own functions, or asynq's defaults where they are nil, are asked about everything else.
//
// Call it for each asynq.Server that the Gate serves, last of all that changes its Config. Tasks of a server that it was
// not asked for wait in place whatever they wait for, and the log says so once: Asynq would count a deferral as a failure.
// Configure makes a Gate whole again after Drain.
//
// A nil Gate returns cfg as it is.
func (g *Gate) Configure(cfg asynq.Config) asynq.Config {
	if g == nil || g.lanes == nil {
		return cfg
	}
	cfg.IsFailure = isFailure(cfg.IsFailure)
	cfg.RetryDelayFunc = retryDelay(cfg.RetryDelayFunc)
	cfg.ErrorHandler = errorHandler(cfg.ErrorHandler)
	cfg.DelayedTaskCheckInterval = atMost(cfg.DelayedTaskCheckInterval, tick)
	s := &server{slots: cfg.Concurrency}
	if s.slots < 1 {
		s.slots = runtime.NumCPU() // as asynq does
	}
	cfg.TaskCheckInterval = atMost(cfg.TaskCheckInterval, g.interval(s.slots))
	s.calls = make(chan struct{}, max(1, s.slots/2))
	cfg.BaseContext = g.baseContext(cfg.BaseContext, s)

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.draining {
		g.draining = false
		if g.caller != nil {
			g.caller.reopen()
		}
		g.run, g.halt = context.WithCancel(context.Background())
	}
	return cfg
}

// interval is how long an idle worker of so many slots may sleep.
func (g *Gate) interval(slots int) time.Duration {
	if g.caller != nil || g.cfg.Limiter == nil {
		return checkInterval
	}
	rate := g.cfg.Limiter.Stats().Rate
	if !rate.Valid() || rate.IsUnlimited() {
		return checkInterval
	}
	return min(max(rate.TimeFor(int64(slots))/8, checkInterval), calmInterval)
}

// baseContext marks each task with its server. It must not cancel: Asynq would count that as a failure of every task.
func (g *Gate) baseContext(own func() context.Context, s *server) func() context.Context {
	return func() context.Context {
		ctx := context.Background()
		if own != nil {
			if ctx = own(); ctx == nil {
				return nil // asynq's to complain about
			}
		}
		return context.WithValue(ctx, serverKey{g}, s)
	}
}

func isFailure(own func(error) bool) func(error) bool {
	return func(err error) bool {
		switch _, back := handsBack(err); {
		case back:
			return false
		case own != nil:
			return own(err)
		}
		return err != nil
	}
}

func retryDelay(own asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	if own == nil {
		own = asynq.DefaultRetryDelayFunc
	}
	return func(n int, err error, t *asynq.Task) time.Duration {
		if d, back := handsBack(err); back {
			return d.delay(time.Now())
		}
		return own(n, err, t)
	}
}

func errorHandler(own asynq.ErrorHandler) asynq.ErrorHandler {
	return asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		if _, back := handsBack(err); !back && !isnil.Value(own) {
			own.HandleError(ctx, t, err)
		}
	})
}

func atMost(d, limit time.Duration) time.Duration {
	if d <= 0 || d > limit {
		return limit
	}
	return d
}
