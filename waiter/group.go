package waiter

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/fadf4e53/sluice"
)

// A Group is an errgroup.Group whose functions each wait their turn before they start: paced fan-out in three lines.
//
//	g, ctx := waiter.NewGroup(ctx, limiter)
//	for _, job := range jobs {
//		g.Go(func() error { return send(ctx, job) })
//	}
//	err := g.Wait()
//
// A function first gets its slot (see SetLimit), then its unit, then it runs: no unit is taken by work that cannot
// start. When a function or its waiting fails, the Group's context ends, and what has not got its unit by then takes
// none and does not start.
//
// The zero Group is not usable: call NewGroup. Any number of goroutines may call Go.
type Group struct {
	errs   *errgroup.Group
	ctx    context.Context
	waiter sluice.Waiter
	wrong  error // what NewGroup was given; then nothing starts
}

// NewGroup returns a Group that takes one unit of w for each function, and a context that ends when a function or its
// waiting fails, or when Wait returns. A nil ctx or w is told by Wait.
func NewGroup(ctx context.Context, w sluice.Waiter) (*Group, context.Context) {
	g := &Group{waiter: w}
	switch {
	case ctx == nil:
		g.wrong, ctx = groupInvalid("ctx"), context.Background()
	case w == nil:
		g.wrong = groupInvalid("Waiter")
	}
	g.errs, g.ctx = errgroup.WithContext(ctx)
	return g, g.ctx
}

// Go runs f in a goroutine once one unit has been taken for it. Like errgroup's, it blocks while SetLimit's number of
// functions is active; it does not block for the unit. The first error, f's or the waiting's, is Wait's.
func (g *Group) Go(f func() error) {
	if g == nil || g.errs == nil {
		return // Wait tells
	}
	g.errs.Go(func() error {
		switch {
		case g.wrong != nil:
			return g.wrong
		case f == nil:
			return groupInvalid("function")
		}
		if err := g.waiter.Wait(g.ctx, 1); err != nil {
			return err
		}
		return f()
	})
}

// SetLimit bounds how many functions are active, those that wait for their unit included; a negative n is no bound.
// It must not be called while any is active.
func (g *Group) SetLimit(n int) {
	if g != nil && g.errs != nil {
		g.errs.SetLimit(n)
	}
}

// Wait blocks until all functions have returned, and returns the first error.
func (g *Group) Wait() error {
	if g == nil || g.errs == nil {
		return fmt.Errorf("waiter: Group.Wait on a Group that NewGroup did not make: %w", sluice.ErrInvalid)
	}
	if err := g.errs.Wait(); err != nil {
		return err
	}
	return g.wrong
}

func groupInvalid(what string) error {
	return fmt.Errorf("waiter: Group: %s is nil: must be given; nothing was taken: %w", what, sluice.ErrInvalid)
}
