package sluicetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/stretchr/testify/require"
)

const programSteps = 300

// A program is a random sequence of calls, and the books about what came of it.
type program struct {
	t     *trial
	seed  uint64
	rng   *rand.Rand
	l     sluice.Limiter
	rate  sluice.Rate
	burst int
	// cancelsLate lets Reservations be cancelled after their turn too.
	cancelsLate bool

	running                           sync.WaitGroup
	mu                                sync.Mutex // guards what follows
	starts                            []start
	granted, refused, canceled, units uint64
}

// A start is work that was let go and that did start.
type start struct {
	at time.Duration
	n  int
}

func newProgram(t *trial, seed uint64) *program {
	rng := rand.New(rand.NewPCG(seed, 0))
	p := &program{t: t, seed: seed, rng: rng, rate: odd[rng.IntN(len(odd))], burst: 1 + rng.IntN(12)}
	p.l = t.rested(p.rate, p.burst)
	return p
}

// upTo returns a random time in which about so many units flow at most.
func (p *program) upTo(units int64) time.Duration {
	return 1 + time.Duration(p.rng.Int64N(int64(p.rate.TimeFor(units))))
}

// play calls for a little more than the rate, so that there mostly is a line. All that is random is drawn here, in one
// goroutine, so that a seed always plays the same.
func (p *program) play() {
	for range programSteps {
		time.Sleep(p.upTo(int64(p.burst)))
		n := 1 + p.rng.IntN(p.burst)
		switch p.rng.IntN(12) {
		case 0, 1, 2:
			p.wait(background, n)
		case 3, 4, 5: // too near, or near enough
			ctx, cancel := context.WithTimeout(background, p.upTo(int64(3*p.burst)))
			p.t.Cleanup(cancel)
			p.wait(ctx, n)
		case 6, 7: // leaves the line, or is through before
			ctx, cancel := context.WithCancel(background)
			time.AfterFunc(p.upTo(int64(2*p.burst)), cancel)
			p.wait(ctx, n)
		case 8, 9:
			p.try(n)
		case 10:
			p.reserve(n, p.rng.IntN(2) == 0, p.upTo(int64(2*p.burst)))
		case 11:
			if p.rng.IntN(4) == 0 {
				require.NoError(p.t, p.l.Pause(background, p.upTo(int64(2*p.burst))))
			}
		}
	}
	p.running.Wait()
}

func (p *program) wait(ctx context.Context, n int) {
	p.running.Go(func() { p.book(p.l.Wait(ctx, n), n, p.t.since()) })
}

func (p *program) try(n int) {
	d := p.t.try(p.l, n)
	if d.Allowed {
		p.book(nil, n, p.t.since()+d.Delay)
	} else {
		p.book(&sluice.Refusal{}, n, 0)
	}
}

func (p *program) reserve(n int, keep bool, after time.Duration) {
	r, err := p.l.Reserve(background, n)
	if err != nil {
		p.book(err, n, 0)
		return
	}
	if keep {
		p.running.Go(func() { p.book(r.Wait(background), n, p.t.since()) })
		return
	}
	if !p.cancelsLate {
		after = min(after, r.Delay()-1) // it may come sooner than that when others leave: see below
	}
	p.running.Go(func() {
		time.Sleep(after)
		if r.Delay() > 0 {
			r.Cancel()
			p.book(context.Canceled, n, 0)
			return
		}
		if !p.cancelsLate {
			// Its turn has come already, and the work starts late.
			p.book(nil, n, p.t.since())
			return
		}
		r.Cancel() // the work did not start
		p.book(nil, 0, 0)
	})
}

// book writes down how a call for n units ended; n == 0 is one that was granted and then cancelled.
func (p *program) book(err error, n int, at time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var no *sluice.Refusal
	switch {
	case errors.As(err, &no):
		p.refused++
	case err != nil:
		p.canceled++
	default:
		p.granted++
		p.units += uint64(n)
		if n > 0 {
			p.starts = append(p.starts, start{at, n})
		}
	}
}
