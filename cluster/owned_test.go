package cluster

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// start is work that went: n units at a time, in parts.
type start struct {
	at exact.U128
	n  int
}

// lawful looks at every window that begins and ends with a start: no other can hold more.
func lawful(t *testing.T, terms terms, starts []*start) {
	t.Helper()
	slices.SortFunc(starts, func(a, b *start) int {
		switch {
		case a.at.Less(b.at):
			return -1
		case b.at.Less(a.at):
			return 1
		}
		return cmp.Compare(a.n, b.n)
	})
	for i := range starts {
		units := 0
		for _, s := range starts[i:] {
			units += s.n
			free := terms.full.Add(s.at.Sub(starts[i].at))
			require.False(t, free.Less(terms.cost(units)), "%d units within %v at %s",
				units, terms.wait(s.at.Sub(starts[i].at)), terms.text)
		}
	}
}

// Three processes share a limit; callers leave their lines before, at and after their turns, others move up, spares
// serve newcomers, tails are given back. Whoever stays starts no later than he was told first, and all of them
// together keep the law to the last fraction of a ns.
func TestSlotsThatChangeHandsKeepTheLaw(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		rate := []sluice.Rate{sluice.PerSecond(3), sluice.PerSecond(7), sluice.PerSecond(10), sluice.PerSecond(999_983)}[rng.IntN(4)]
		burst := 1 + rng.IntN(6)
		terms, err := newTerms(rate, burst, time.Hour)
		require.NoError(t, err)
		m := &model{terms: terms, rng: rng, first: map[*place]exact.U128{}}
		for i := range m.processes {
			m.processes[i] = &Limiter{terms: terms, cfg: Config{Rate: rate, Burst: burst, Horizon: time.Hour}, known: true, shut: true}
		}
		unit := int64(rate.TimeFor(1))
		for range 600 {
			m.now = m.now.Add(terms.span(1 + time.Duration(rng.Int64N(unit*int64(burst)))))
			m.step()
		}
		lawful(t, terms, m.starts)
		require.Greater(t, len(m.starts), 150, "seed %d", seed)
		require.Positive(t, m.moved, "seed %d: nobody has moved up", seed)
	}
}

// A model is Redis in four lines, and processes whose clocks are right.
type model struct {
	terms     terms
	rng       *rand.Rand
	now, tat  exact.U128
	processes [3]*Limiter
	first     map[*place]exact.U128 // what they were told at first
	held      []booking
	starts    []*start
	moved     int
}

// A booking is a Reservation that may be cancelled after its turn.
type booking struct {
	l     *Limiter
	p     *place
	start *start
}

// settle lets those go whose turns have come, as settleLocked does, and books them.
func (m *model) settle(l *Limiter) {
	for p := l.line.head; p != nil; p = l.line.head {
		plan, ok := l.owned.plan(m.terms.cost(p.n), l.floor, m.terms.full)
		if !ok {
			panic("someone in line owns too little")
		}
		if m.now.Less(plan.at) {
			break
		}
		if first := m.first[p]; plan.at.Less(first) {
			m.moved++
		} else if first.Less(plan.at) {
			panic("later than told")
		}
		l.line.remove(p)
		l.need = l.need.Sub(plan.need)
		p.state, p.used = granted, l.owned.take(plan)
		l.raiseLocked(plan.at)
		s := &start{plan.at, p.n}
		m.starts = append(m.starts, s)
		if m.rng.IntN(3) == 0 {
			m.held = append(m.held, booking{l, p, s})
		}
	}
	l.raiseLocked(m.now)
}

func (m *model) step() {
	l := m.processes[m.rng.IntN(3)]
	m.settle(l)
	switch m.rng.IntN(4) {
	case 0, 1:
		for range 1 + m.rng.IntN(3) {
			m.join(l, 1+m.rng.IntN(m.terms.burst))
		}
	case 2:
		if l.line.count > 0 {
			p := l.line.head
			for range m.rng.IntN(l.line.count) {
				p = p.next
			}
			l.line.remove(p)
			l.need = l.need.Sub(m.terms.cost(p.n))
		}
	case 3: // its work did not start
		if len(m.held) > 0 {
			b := m.held[0]
			m.held = m.held[1:]
			b.start.n = 0
			l = b.l
			m.settle(l)
			l.backLocked(b.p)
		}
	}
	m.settle(l)
	trip := &trip{}
	l.end = m.tat
	l.spareLocked(trip)
	m.tat = m.tat.Sub(trip.ask.back)
	if m.tat.Less(m.now) {
		m.tat = m.now
	}
	m.settle(l)
}

// join takes a spare, or what Redis gives.
func (m *model) join(l *Limiter, n int) {
	if m.tat.Less(m.now) {
		m.tat = m.now
	}
	p := newPlace(wait, n)
	cost := m.terms.cost(n)
	if l.owned.total.Less(l.need.Add(cost)) {
		m.take(l, cost)
	}
	l.line.push(p)
	l.need = l.need.Add(cost)
	due, ok := l.dueLocked(p)
	if !ok { // there are spares, and too far from one another
		m.take(l, cost)
		due, ok = l.dueLocked(p)
	}
	if !ok {
		panic("what Redis has just given is too little")
	}
	m.first[p] = due
}

func (m *model) take(l *Limiter, cost exact.U128) {
	l.owned.put(span{m.tat, m.tat.Add(cost)})
	m.tat = m.tat.Add(cost)
}
