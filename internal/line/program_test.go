package line

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

// TestProgramsOfManyGoroutinesAgainstTheModel runs random programs, each caller in a goroutine of its own and on the
// Line's own clock and timer, and wants every one of them back at the nanosecond and with the answer that the model
// gives.
func TestProgramsOfManyGoroutinesAgainstTheModel(t *testing.T) {
	programs := uint64(400)
	if testing.Short() {
		programs = 50
	}
	for seed := range programs {
		synctest.Test(t, func(t *testing.T) {
			newProgram(t, seed).run()
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// program is a pair of a Line and its model, with callers.
type program struct {
	t     *testing.T
	r     *rand.Rand
	l     *Line
	m     *model
	start time.Time
	calls []*caller // in line, as the model sees it
	held  []held
	told  []held // by TryReserve: granted when it was told
	shut  bool
	sum   sluice.Stats // what the model has counted
}

// caller is a goroutine in Wait.
type caller struct {
	p        *item
	cancel   context.CancelFunc
	deadline int64 // 0: none
	back     chan came
}

type came struct {
	at  int64
	err error
}

func newProgram(t *testing.T, seed uint64) *program {
	r := rand.New(rand.NewPCG(seed, 7))
	rate := sluice.Per(1+r.Int64N(40), time.Duration(1+r.Int64N(1e9)))
	burst := 1 + r.IntN(8)
	pacer := r.IntN(3) == 0
	n, d := rate.Fraction()
	return &program{
		t: t, r: r, start: time.Now(),
		l: New("test", Config{Rate: rate, Burst: burst, Pacer: pacer}),
		m: &model{n: n, d: int64(d), burst: int64(burst), pacer: pacer, level: rat(int64(burst))},
	}
}

func (p *program) now() int64 { return int64(time.Since(p.start)) }

func (p *program) run() {
	for range 150 {
		switch k := p.r.IntN(20); {
		case k < 7:
			p.wait()
		case k < 9:
			p.reserve()
		case k < 11:
			p.try()
		case k < 13:
			p.leave()
		case k < 14:
			p.change()
		default:
			p.sleep(p.r.Int64N(3 * (p.m.d/p.m.n + 2)))
		}
		p.settle()
	}
	p.finish()
}

// settle collects whoever the model says has been granted.
func (p *program) settle() {
	synctest.Wait()
	p.m.settle(p.now())
	p.calls = slices.DeleteFunc(p.calls, func(c *caller) bool {
		if slices.Contains(p.m.line, c.p) {
			return false
		}
		p.want(c, c.p.turn, nil)
		return true
	})
	if !slices.ContainsFunc(p.calls, func(c *caller) bool { return c.deadline == p.now() }) { // see sleep
		require.Equal(p.t, len(p.m.line), p.l.Stats().Waiting)
	}
}

func (p *program) want(c *caller, at int64, err error) {
	p.t.Helper()
	select {
	case got := <-c.back:
		require.Equal(p.t, at, got.at)
		if err == nil {
			require.NoError(p.t, got.err)
			p.sum.Granted++
			p.sum.Units += uint64(c.p.n)
		} else {
			require.ErrorIs(p.t, got.err, err)
		}
	default:
		p.t.Fatalf("still in line at %d, want it back at %d with %v", p.now(), at, err)
	}
	c.cancel()
}

// sleep lets d pass, and ends at every deadline on the way.
func (p *program) sleep(d int64) {
	for end := p.now() + d; ; {
		next := end
		for _, c := range p.calls {
			if c.deadline > p.now() {
				next = min(next, c.deadline)
			}
		}
		time.Sleep(time.Duration(next - p.now()))
		p.settle()
		for _, c := range slices.Clone(p.calls) {
			if c.deadline == p.now() {
				p.gone(c, context.DeadlineExceeded)
			}
		}
		p.settle()
		if p.now() >= end {
			return
		}
	}
}

// gone takes c out of the model's line.
func (p *program) gone(c *caller, err error) {
	synctest.Wait()
	p.m.leave(c.p)
	p.calls = slices.DeleteFunc(p.calls, func(d *caller) bool { return d == c })
	p.want(c, p.now(), err)
	p.sum.Canceled++
}

func (p *program) wait() {
	c := &caller{p: &item{n: 1 + p.r.Int64N(p.m.burst)}, back: make(chan came, 1)}
	ctx := context.Background()
	if p.r.IntN(3) == 0 {
		c.deadline = p.now() + 1 + p.r.Int64N(4*(p.m.d/p.m.n+2))
		ctx, c.cancel = context.WithDeadline(ctx, p.start.Add(time.Duration(c.deadline)))
	} else {
		ctx, c.cancel = context.WithCancel(ctx)
	}
	go func() {
		err := p.l.Wait(ctx, int(c.p.n))
		c.back <- came{p.now(), err}
	}()
	synctest.Wait()
	due, _ := p.m.tail(c.p.n)
	free := p.m.free(c.p.n, p.now())
	switch {
	case p.shut:
		p.want(c, p.now(), sluice.ErrClosed)
	case free:
		c.p.turn = p.now()
		p.m.take(c.p)
		p.want(c, p.now(), nil)
		return
	case !p.m.fits(c.p.n):
		p.want(c, p.now(), sluice.ErrFull)
	case c.deadline > 0 && due > c.deadline:
		p.want(c, p.now(), sluice.ErrDeadline)
	default:
		p.m.line = append(p.m.line, c.p)
		p.calls = append(p.calls, c)
		return
	}
	p.sum.Refused++
}

func (p *program) reserve() {
	it := &item{n: 1 + p.r.Int64N(p.m.burst)}
	free, fits := p.m.free(it.n, p.now()), p.m.fits(it.n)
	r, err := p.l.Reserve(context.Background(), int(it.n))
	if p.shut || !free && !fits {
		var no *sluice.Refusal
		require.True(p.t, errors.As(err, &no))
		p.sum.Refused++
		return
	}
	require.NoError(p.t, err)
	if free {
		p.m.take(it)
	} else {
		p.m.line = append(p.m.line, it)
	}
	p.held = append(p.held, held{r, it})
}

func (p *program) try() {
	n := 1 + p.r.Int64N(p.m.burst)
	free := p.m.free(n, p.now())
	r, d, err := p.l.TryReserve(context.Background(), int(n))
	it := &item{n: n}
	switch {
	case p.shut:
		require.ErrorIs(p.t, err, sluice.ErrClosed)
		p.sum.Refused++
	case free:
		require.True(p.t, d.Allowed)
		p.m.take(it)
		p.sum.Granted++
		p.sum.Units += uint64(n)
	case p.m.pacer && p.m.fits(n):
		it.turn, it.over = p.m.tail(n)
		require.Equal(p.t, sluice.Decision{Allowed: true, Delay: time.Duration(it.turn - p.now())},
			sluice.Decision{Allowed: d.Allowed, Delay: d.Delay})
		i := 0
		for i < len(p.m.told) && p.m.told[i].turn <= it.turn {
			i++
		}
		p.m.told = slices.Insert(p.m.told, i, it)
		p.sum.Granted++
		p.sum.Units += uint64(n)
		if p.r.IntN(2) == 0 {
			p.told = append(p.told, held{r, it})
		}
	default:
		require.False(p.t, d.Allowed)
		p.sum.Refused++
	}
}

// leave lets a caller's ctx end, or cancels a reservation before its turn.
func (p *program) leave() {
	if len(p.calls) > 0 && p.r.IntN(2) == 0 {
		c := p.calls[p.r.IntN(len(p.calls))]
		c.cancel()
		p.gone(c, context.Canceled)
		return
	}
	for i, h := range p.told {
		if slices.Contains(p.m.told, h.p) && p.r.IntN(2) == 0 {
			h.r.Cancel()
			p.m.leave(h.p)
			p.told = slices.Delete(p.told, i, i+1)
			p.sum.Canceled++
			p.sum.Units -= uint64(h.p.n)
			return
		}
	}
	for i, h := range p.held {
		if slices.Contains(p.m.line, h.p) {
			h.r.Cancel()
			p.m.leave(h.p)
			p.held = slices.Delete(p.held, i, i+1)
			p.sum.Canceled++
			return
		}
	}
}

func (p *program) change() {
	switch k := p.r.IntN(10); {
	case p.shut:
	case k < 4:
		d := 1 + p.r.Int64N(4*(p.m.d/p.m.n+2))
		require.NoError(p.t, p.l.Pause(context.Background(), time.Duration(d)))
		p.m.paused = max(p.m.paused, p.now()+d)
	case k < 7:
		rate := sluice.Per(1+p.r.Int64N(40), time.Duration(p.m.d))
		require.NoError(p.t, p.l.SetRate(rate))
		n, d := rate.Fraction()
		if n != p.m.n || int64(d) != p.m.d {
			if most := p.m.most(); p.m.level.Cmp(most) > 0 {
				p.m.level.Set(most)
			}
			p.m.setRate(n, int64(d))
		}
	case k < 9 && !p.m.pacer:
		p.m.setBurst(1 + p.r.Int64N(8))
		require.NoError(p.t, p.l.SetBurst(int(p.m.burst)))
	case k == 9 && p.r.IntN(4) == 0:
		require.NoError(p.t, p.l.Close())
		p.shut = true
		synctest.Wait()
		for _, c := range p.calls {
			p.want(c, p.now(), sluice.ErrClosed)
			p.sum.Refused++
		}
		p.calls, p.m.line, p.m.told = nil, nil, nil
		for _, h := range p.held {
			if h.r.Delay() == sluice.Never {
				p.sum.Refused++
			}
		}
	}
}

// finish lets all who are left have their turn, and adds up.
func (p *program) finish() {
	for range 100_000 {
		if len(p.m.line)+len(p.m.told) == 0 {
			break
		}
		next, _ := p.m.next()
		p.sleep(max(next-p.now(), 1))
	}
	require.Empty(p.t, p.calls)
	for _, h := range p.held {
		if h.r.Delay() == 0 {
			p.sum.Granted++
			p.sum.Units += uint64(h.p.n)
		}
	}
	got := p.l.Stats()
	require.Equal(p.t, p.sum, sluice.Stats{Granted: got.Granted, Refused: got.Refused, Canceled: got.Canceled, Units: got.Units})
	require.EqualValues(p.t, unarmed, p.l.armed)
}
