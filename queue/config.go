package queue

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/isnil"
)

// Config says what a Gate limits and how. Exactly one of Limiter and Route is required.
type Config struct {
	// Limiter is the one limit of every task. All tasks being under one limit, a slot that waits harms nobody, and
	// nothing is handed back as long as each task's own deadline allows. Required, or Route.
	Limiter sluice.Limiter

	// Route returns the limit of this task; nil (a nil pointer in the interface too) if it is not limited. The Gate
	// remembers limiters by ==, so return the same one for the same limit: build All once and keep it. It is called
	// once for each delivery of a task, by many goroutines. Required, or Limiter.
	Route func(ctx context.Context, t *asynq.Task) sluice.Limiter

	// Cost returns how many units a task takes; 0 is not limited, less is a failure with sluice.ErrInvalid.
	// Default: 1.
	Cost func(ctx context.Context, t *asynq.Task) int

	// MaxWait is the longest wait in place, holding a worker slot; a task on its last attempt waits on, for Asynq
	// would archive it. Without Redis keep it above a second or leave it 0: what comes back comes in ticks of a
	// second, and a limit whose work waits less than a tick stands idle between them. With Redis keep it above 150 ms,
	// for an idle worker sleeps up to 75 ms: at 50 ms the limit reaches four fifths of its rate.
	// Default: with Limiter, as long as the task's deadline allows; with Route and Redis, a second, and a quarter
	// of the server's slots; with Route alone, as with Limiter.
	MaxWait time.Duration

	// Redis lets the Gate call deferred tasks back in time for their turn. Default: the Gate waits in place, and
	// defers only beyond MaxWait, if that is set, or what could not start before its own deadline; that comes back at
	// a tick of Asynq's forwarder.
	Redis asynq.RedisConnOpt

	// Logger hears what the Gate has to say, which is little. Default: slog.Default().
	Logger *slog.Logger

	// OnDefer is called for each task that is handed back, by the goroutine of that task and with no lock held.
	// A panic in it is logged and is not the task's failure. Default: nobody is told.
	OnDefer func(ctx context.Context, d Deferral)
}

// NewGate checks cfg, copies it and returns its Gate. The error names field, value and rule and is sluice.ErrInvalid.
// It does not connect to Redis.
func NewGate(cfg Config) (*Gate, error) {
	bad := func(field string, value any, rule string) (*Gate, error) {
		return nil, fmt.Errorf("queue: Config.%s %v: %s: %w", field, value, rule, sluice.ErrInvalid)
	}
	switch {
	case cfg.Limiter == nil && cfg.Route == nil:
		return bad("Limiter", "<nil>", "required where Config.Route is nil too")
	case cfg.Limiter != nil && cfg.Route != nil:
		return bad("Limiter", fmt.Sprintf("%T", cfg.Limiter), "must be nil where Config.Route is set: exactly one of them")
	case cfg.Limiter != nil && isnil.Value(cfg.Limiter):
		return bad("Limiter", fmt.Sprintf("(%T)(nil)", cfg.Limiter), "must not be a nil pointer")
	case cfg.MaxWait < 0:
		return bad("MaxWait", cfg.MaxWait, "must not be negative")
	case cfg.Redis != nil && isnil.Value(cfg.Redis):
		return bad("Redis", fmt.Sprintf("(%T)(nil)", cfg.Redis), "must not be a nil pointer")
	}
	g := &Gate{
		cfg:    cfg,
		lanes:  make(map[sluice.Limiter]*lane),
		parked: make(map[taskKey]*parked),
		stands: make(map[*turn]context.CancelFunc),
	}
	g.run, g.halt = context.WithCancel(context.Background())
	if cfg.Redis != nil {
		client, ok := cfg.Redis.MakeRedisClient().(redis.UniversalClient)
		if !ok {
			return bad("Redis", fmt.Sprintf("%T", cfg.Redis), "must make a redis.UniversalClient, as asynq's own options do")
		}
		g.caller = &caller{client: client, connect: func() redis.UniversalClient {
			return cfg.Redis.MakeRedisClient().(redis.UniversalClient)
		}}
	}
	return g, nil
}

func (g *Gate) log() *slog.Logger {
	if g.cfg.Logger != nil {
		return g.cfg.Logger
	}
	return slog.Default()
}
