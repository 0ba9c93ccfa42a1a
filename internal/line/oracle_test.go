package line

import (
	"context"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
)

// pair runs one program on a Line and on the model.
type pair struct {
	t    *testing.T
	l    *Line
	m    *model
	now  int64
	held []held
}

type held struct {
	r sluice.Reservation
	p *item
}

func FuzzOracle(f *testing.F) {
	f.Add(true, uint16(3), uint32(1e9), uint8(2), []byte{0x20, 0x21, 0x22, 0x23, 0x14, 0x55, 0x99, 0x31})
	f.Add(false, uint16(3), uint32(1e9), uint8(5), []byte{0x20, 0x21, 0x22, 0x23, 0x14, 0x55, 0x99, 0x31})
	f.Add(false, uint16(20), uint32(1e9), uint8(9), []byte{1, 2, 1, 1, 0x12, 2, 0x22, 4, 3, 0x81, 1, 5, 0x44, 2, 2, 1, 1})
	f.Add(true, uint16(7), uint32(3), uint8(4), []byte{2, 2, 2, 2, 0x13, 0x23, 0x33, 6, 0x71, 0x22, 0x77, 0x66, 0x15})
	f.Fuzz(func(t *testing.T, pacer bool, n uint16, d uint32, burst uint8, program []byte) {
		if n == 0 || d == 0 || burst == 0 || len(program) > 120 {
			t.Skip("not a rate")
		}
		rate := sluice.Per(int64(n), time.Duration(d))
		p := &pair{t: t}
		p.l = New("test", Config{
			Rate: rate, Burst: int(burst), Pacer: pacer, Oversize: !pacer,
			Now: func() time.Time { return time.Unix(0, p.now) },
		})
		rn, rd := rate.Fraction()
		p.m = &model{n: rn, d: int64(rd), burst: int64(burst), pacer: pacer, level: rat(int64(burst)), paused: math.MinInt64}
		for i := 0; i+1 < len(program); i += 2 {
			p.step(program[i], int64(program[i+1]))
			p.compare()
		}
	})
}

// interval is about the time of one unit, so that the programs meet the edges.
func (p *pair) interval() int64 { return p.m.d/p.m.n + 1 }

func (p *pair) step(op byte, arg int64) {
	ctx := context.Background()
	n := int(arg%(p.m.burst+1)) + 1
	switch op % 8 {
	case 0, 1:
		p.now += arg * p.interval() / 16
	case 2:
		p.now -= arg * p.interval() / 64
	case 3:
		p.try(n, op&8 != 0)
	case 4, 5:
		if !p.fits(int64(n)) {
			n = 1
		}
		if p.l.cfg.Pacer && int64(n) > p.m.burst {
			return
		}
		p.m.settle(p.now)
		want := &item{n: int64(n)}
		free, fits := p.m.free(want.n, p.now), p.m.fits(want.n)
		r, err := p.l.Reserve(ctx, n)
		if !free && !fits {
			var no *sluice.Refusal
			require.ErrorAs(p.t, err, &no)
			require.ErrorIs(p.t, err, sluice.ErrFull)
			return
		}
		require.NoError(p.t, err)
		if free {
			want.turn = p.now
			p.m.take(want)
		} else {
			p.m.line = append(p.m.line, want)
		}
		p.held = append(p.held, held{r, want})
	case 6:
		p.cancel(arg)
	case 7:
		p.change(arg)
	}
}

func (p *pair) fits(n int64) bool { return !p.l.cfg.Pacer || n <= p.m.burst }

func (p *pair) try(n int, reserve bool) {
	p.m.settle(p.now)
	m := p.m
	want := sluice.Decision{Allowed: true}
	it := &item{n: int64(n)}
	var d sluice.Decision
	var err error
	if reserve {
		var r sluice.Reservation
		if r, d, err = p.l.TryReserve(context.Background(), n); r != nil {
			p.held = append(p.held, held{r, it})
		}
	} else {
		d, err = p.l.Try(context.Background(), n)
	}
	if m.pacer && int64(n) > m.burst {
		require.ErrorIs(p.t, err, sluice.ErrTooLarge)
		return
	}
	require.NoError(p.t, err)
	switch {
	case m.free(it.n, p.now):
		m.take(it)
	case m.pacer && m.fits(it.n):
		it.turn, it.over = m.tail(it.n)
		if it.turn == math.MaxInt64 {
			want = sluice.Decision{RetryAfter: sluice.Never}
			break
		}
		want.Delay = time.Duration(max(it.turn-p.now, 0))
		i := 0
		for i < len(m.told) && m.told[i].turn <= it.turn {
			i++
		}
		m.told = append(m.told[:i:i], append([]*item{it}, m.told[i:]...)...)
	case m.pacer:
		want = sluice.Decision{RetryAfter: d.RetryAfter}
		p.truthful(it.n, d.RetryAfter)
	case it.n > m.burst:
		want = sluice.Decision{RetryAfter: sluice.Never}
	default:
		due, _ := m.tail(it.n)
		want = sluice.Decision{RetryAfter: time.Duration(max(due-p.now, 0))}
	}
	want.ResetAfter = time.Duration(max(m.rest()-p.now, 0))
	want.Remaining = d.Remaining // see compare
	require.Equal(p.t, want, d, "Try %d at %d", n, p.now)
}

// truthful wants a full pacer to have room for n after the wait, if nobody else comes, and not a nanosecond before.
func (p *pair) truthful(n int64, wait time.Duration) {
	if wait == sluice.Never {
		return // farther than a clock goes
	}
	for early, want := range []bool{true, false} {
		c := p.m.copy()
		at := p.now + int64(wait) - int64(early)
		c.settle(at)
		require.Equal(p.t, want, c.free(n, at) || c.fits(n), "RetryAfter %v less %d ns at %d", wait, early, p.now)
	}
}

func (p *pair) cancel(arg int64) {
	if len(p.held) == 0 {
		return
	}
	p.m.settle(p.now)
	i := int(arg) % len(p.held)
	h := p.held[i]
	granted := true
	for _, q := range slices.Concat(p.m.line, p.m.told) {
		granted = granted && q != h.p
	}
	h.r.Cancel()
	h.r.Cancel() // again is nothing
	if granted {
		p.m.giveBack(h.p)
	} else {
		p.m.leave(h.p)
	}
	p.m.settle(p.now)
	p.held = append(p.held[:i], p.held[i+1:]...)
}

func (p *pair) change(arg int64) {
	p.m.settle(p.now)
	switch arg % 3 {
	case 0:
		d := arg * p.interval() / 8
		require.NoError(p.t, p.l.Pause(context.Background(), time.Duration(d)))
		if d > 0 {
			p.m.paused = max(p.m.paused, p.now+d)
		}
	case 1:
		r := sluice.Per(arg+1, time.Duration(p.m.d))
		require.NoError(p.t, p.l.SetRate(r))
		n, d := r.Fraction()
		if n != p.m.n || int64(d) != p.m.d {
			if most := p.m.most(); p.m.level.Cmp(most) > 0 {
				p.m.level.Set(most)
			}
			p.m.setRate(n, int64(d))
		}
	case 2:
		if p.m.pacer {
			return
		}
		require.NoError(p.t, p.l.SetBurst(int(arg%7)+1))
		p.m.setBurst(arg%7 + 1)
	}
	p.m.settle(p.now)
}

// compare looks at everything that can be seen.
func (p *pair) compare() {
	p.m.settle(p.now)
	p.l.Stats() // both must have seen this reading of the clock
	waiting := 0
	for _, h := range p.held {
		want := time.Duration(0)
		for _, q := range p.m.line {
			if q == h.p {
				waiting++
				if want = sluice.Never; p.m.turn(q) != math.MaxInt64 {
					want = time.Duration(max(p.m.turn(q)-p.now, 0))
				}
			}
		}
		if slices.Contains(p.m.told, h.p) {
			want = time.Duration(max(h.p.turn-p.now, 0))
		}
		require.Equal(p.t, want, h.r.Delay(), "Delay at %d", p.now)
	}
	require.Equal(p.t, waiting, p.l.count)
	left := new(big.Rat).Sub(p.m.level, p.m.outstanding())
	if p.m.level.Cmp(rat(p.m.burst)) > 0 {
		left.Sub(rat(p.m.burst), p.m.outstanding())
	}
	if left.Sign() < 0 {
		left.SetInt64(0)
	}
	whole := new(big.Int).Quo(left.Num(), left.Denom())
	require.EqualValues(p.t, whole.Int64(), p.l.thereLocked(), "units there at %d", p.now)
}
