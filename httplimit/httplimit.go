package httplimit

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/isnil"
)

// Config says what requests are limited and how. Exactly one of Limiter and Route is required.
type Config struct {
	// Limiter is the one limit of every request. Required, or Route.
	Limiter sluice.Limiter

	// Route returns the limit of this request; nil (a nil pointer in the interface too) if it is not limited, as a
	// health check is. It may build what it returns: sluice.All(everybody, users.For(name)) charges both or neither.
	// Many goroutines call it. Required, or Limiter.
	Route func(r *http.Request) sluice.Limiter

	// Cost returns how many units a request takes; 0 is not limited, less is answered with 500. Default: 1.
	Cost func(r *http.Request) int

	// MaxWait is how long a request may be held for its turn. A request whose turn would come later is refused at
	// once, and is not held for nothing. Default: 0, refuse what cannot go now.
	MaxWait time.Duration

	// Refuse writes what a refused request gets. Retry-After and the RateLimit fields are set by then, and the status
	// is 429 unless Refuse sets another. Default: a line of text.
	Refuse http.Handler
}

// New returns a middleware that holds requests to a limit, or an error that names the field, its value and the rule. It
// copies c. The package comment is its manual.
func New(c Config) (func(http.Handler) http.Handler, error) {
	bad := func(field string, value any, rule string) (func(http.Handler) http.Handler, error) {
		return nil, fmt.Errorf("httplimit: Config.%s is %v: %s: %w", field, value, rule, sluice.ErrInvalid)
	}
	switch {
	case c.Limiter == nil && c.Route == nil:
		return bad("Limiter", "nil", "required where Config.Route is nil too")
	case c.Limiter != nil && c.Route != nil:
		return bad("Limiter", fmt.Sprintf("a %T", c.Limiter), "must be nil where Config.Route is set: exactly one of them")
	case c.Limiter != nil && isnil.Value(c.Limiter):
		return bad("Limiter", fmt.Sprintf("a nil %T", c.Limiter), "must not be a nil pointer")
	case c.MaxWait < 0:
		return bad("MaxWait", c.MaxWait, "must be at least 0, which refuses what cannot go now")
	case c.Refuse != nil && isnil.Value(c.Refuse):
		return bad("Refuse", fmt.Sprintf("a nil %T", c.Refuse), "must not be a nil pointer")
	}
	g := &guard{Config: c, voice: voice{base: time.Now()}}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
	}, nil
}

// A guard is what all handlers of one middleware share.
type guard struct {
	Config
	voice voice
}

func (g *guard) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	lim, n, err := g.limitOf(r)
	if err == nil && next == nil {
		err = fmt.Errorf("httplimit: handler is nil: must not be nil: %w", sluice.ErrInvalid)
	}
	if err == nil && n > 0 {
		err = g.admit(r.Context(), lim, n)
	}
	switch {
	case err != nil:
		g.answer(w, r, lim, err)
	case n > 0 && r.Context().Err() != nil:
		gone(w) // in the instant of its turn
	default:
		next.ServeHTTP(w, r)
	}
}

// limitOf asks the user's functions. A panic of theirs is the request's, as it would be in its handler.
func (g *guard) limitOf(r *http.Request) (sluice.Limiter, int, error) {
	lim, n := g.Limiter, 1
	if g.Route != nil {
		lim = g.Route(r)
	}
	if isnil.Value(lim) {
		return nil, 0, nil
	}
	if g.Cost != nil {
		n = g.Cost(r)
	}
	if n < 0 {
		return nil, 0, fmt.Errorf("httplimit: Config.Cost is %d for a %s request to %q: must be at least 0: %w", n, r.Method, r.Pattern, sluice.ErrInvalid)
	}
	return lim, n, nil
}

// admit returns nil once n units were taken for work that may start now.
func (g *guard) admit(ctx context.Context, lim sluice.Limiter, n int) error {
	if g.MaxWait == 0 {
		return now(ctx, lim, n)
	}
	held, cancel := context.WithTimeout(ctx, g.MaxWait)
	defer cancel()
	err := lim.Wait(held, n)
	if err != nil && ctx.Err() == nil && (held.Err() != nil || isFull(err)) {
		// It has stood in line in vain since a pause or a lower rate put its turn off; or the line is full, and what the
		// Refusal tells is when that has room, not when a retry passes. What it tells now is that.
		return now(ctx, lim, n)
	}
	return err
}

// now takes n units if work may start now.
func now(ctx context.Context, lim sluice.Limiter, n int) error {
	r, d, err := sluice.TryReserve(ctx, lim, n)
	switch {
	case err != nil:
		return err
	case !d.Allowed:
		return &refusal{retry: d.RetryAfter, left: d.Remaining}
	case d.Delay > 0: // a pacer has room, but the turn is not now
		r.Cancel()
		return &refusal{retry: d.Delay}
	}
	return nil
}
