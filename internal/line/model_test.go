package line

import (
	"math"
	"math/big"
	"slices"
)

// model is the law in exact fractions, with nothing clever in it: it plays every second through, keeps everything,
// and sums up nothing.
type model struct {
	n, d   int64 // units per nanoseconds
	burst  int64
	pacer  bool
	level  *big.Rat // units
	at     int64
	paused int64
	line   []*item
	told   []*item    // by turn
	past   []*big.Rat // all levels, as they would have been without what was given back
}

type item struct {
	n      int64
	turn   int64
	turned int      // where in the history its turn stands
	over   *big.Rat // told: what the bucket holds beyond full at its turn
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func (m *model) copy() *model {
	c := *m
	c.level = new(big.Rat).Set(m.level)
	c.line, c.told, c.past = slices.Clone(m.line), slices.Clone(m.told), nil
	return &c
}

func (m *model) need(n int64) *big.Rat {
	if m.pacer {
		return rat(m.burst)
	}
	return rat(n)
}

// most is what may gather.
func (m *model) most() *big.Rat {
	if len(m.line) > 0 {
		return rat(max(m.burst, m.line[0].n))
	}
	return rat(m.burst)
}

func (m *model) flow(to int64, most *big.Rat) {
	if to <= m.at {
		return
	}
	m.level.Add(m.level, new(big.Rat).Mul(rat(to-m.at), big.NewRat(m.n, m.d)))
	m.at = to
	if most != nil && m.level.Cmp(most) > 0 {
		m.level.Set(most)
	}
}

// wait flows on to t as it does while somebody is in line.
func (m *model) wait(t int64) {
	m.flow(min(t, m.paused), m.most())
	m.flow(t, nil)
}

// when is the first nanosecond with need units in the bucket.
func (m *model) when(need *big.Rat) int64 {
	lack := new(big.Rat).Sub(need, m.level)
	if lack.Sign() <= 0 {
		return m.at
	}
	lack.Mul(lack, big.NewRat(m.d, m.n))
	q, r := new(big.Int).QuoRem(lack.Num(), lack.Denom(), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if q.Add(q, big.NewInt(m.at)); q.IsInt64() {
		return q.Int64()
	}
	return math.MaxInt64
}

// next is the next turn.
func (m *model) next() (int64, *item) {
	if len(m.line) == 0 {
		if len(m.told) == 0 {
			return math.MaxInt64, nil
		}
		return m.told[0].turn, m.told[0]
	}
	head := m.line[0]
	c := m.copy()
	c.flow(c.paused, c.most())
	due := max(m.paused, c.when(m.need(head.n)))
	if len(m.told) > 0 {
		slot := m.told[0]
		c.flow(slot.turn, nil)
		c.level.Sub(c.level, rat(head.n))
		if due > slot.turn || c.level.Cmp(new(big.Rat).Add(rat(m.burst), slot.over)) < 0 {
			return slot.turn, slot
		}
	}
	return due, head
}

// grant gives the next turn, which comes at due.
func (m *model) grant(due int64, p *item) {
	if len(m.told) > 0 && p == m.told[0] {
		if m.when(rat(m.burst)) < due { // ran dry before
			m.flow(due, rat(m.burst))
		} else {
			m.flow(due, nil)
		}
		m.told = m.told[1:]
	} else {
		m.wait(due)
		m.line = m.line[1:]
		p.turn = due
	}
	m.take(p)
}

func (m *model) take(p *item) {
	m.note()
	m.level.Sub(m.level, rat(p.n))
	p.turned = len(m.past)
	m.note()
}

// note writes the level down. From a full bucket all spills, whatever a full one holds later.
func (m *model) note() {
	level := new(big.Rat).Set(m.level)
	if level.Cmp(rat(m.burst)) >= 0 {
		level.SetInt64(math.MaxInt64)
	}
	m.past = append(m.past, level)
}

func (m *model) settle(now int64) {
	for {
		due, p := m.next()
		if p == nil || due > now && (due > m.at || m.paused > now) {
			break
		}
		m.grant(due, p)
	}
	if len(m.line) > 0 {
		m.wait(now)
	} else {
		m.flow(now, rat(m.burst))
	}
	m.note()
}

// turn is when p, which is in line, will go.
func (m *model) turn(p *item) int64 {
	c := m.copy()
	for {
		due, q := c.next()
		if q == p || due == math.MaxInt64 {
			return due
		}
		c.grant(due, q)
	}
}

// tail is when n more would go, and what the bucket would then hold beyond full.
func (m *model) tail(n int64) (int64, *big.Rat) {
	c := m.copy()
	p := &item{n: n}
	c.line = append(c.line, p)
	for {
		due, q := c.next()
		if q == p {
			c.wait(due)
			over := new(big.Rat).Sub(c.level, rat(c.burst))
			if over.Sign() < 0 {
				over = new(big.Rat)
			}
			return due, over
		}
		c.grant(due, q)
	}
}

// rest is when nobody is in line and the bucket is full.
func (m *model) rest() int64 {
	c := m.copy()
	for {
		due, q := c.next()
		if q == nil {
			break
		}
		if due == math.MaxInt64 {
			return due
		}
		c.grant(due, q)
	}
	return max(c.paused, c.when(rat(c.burst)))
}

func (m *model) free(n, now int64) bool {
	return len(m.line) == 0 && len(m.told) == 0 && now >= m.paused && m.level.Cmp(m.need(n)) >= 0
}

// outstanding is all that has been poured and not started.
func (m *model) outstanding() *big.Rat {
	sum := new(big.Rat)
	for _, p := range slices.Concat(m.line, m.told) {
		sum.Add(sum, rat(p.n))
	}
	return sum
}

func (m *model) fits(n int64) bool {
	return !m.pacer || m.level.Cmp(m.outstanding().Add(m.outstanding(), rat(n))) >= 0
}

// giveBack returns what p took, but for what has been spilled since its turn for lack of room.
func (m *model) giveBack(p *item) {
	m.note()
	back := rat(p.n)
	for _, level := range m.past[p.turned:] {
		if room := new(big.Rat).Sub(rat(m.burst), level); room.Cmp(back) < 0 {
			back = room
		}
	}
	if back.Sign() < 0 {
		back = new(big.Rat)
	}
	for _, level := range m.past[p.turned:] {
		level.Add(level, back)
	}
	m.level.Add(m.level, back)
}

func (m *model) leave(p *item) {
	is := func(q *item) bool { return q == p }
	m.line, m.told = slices.DeleteFunc(m.line, is), slices.DeleteFunc(m.told, is)
	if most := m.most(); m.level.Cmp(most) > 0 {
		m.level.Set(most)
	}
}

func (m *model) setBurst(b int64) {
	m.note()
	m.burst = b
	if most := m.most(); m.level.Cmp(most) > 0 {
		m.level.Set(most)
	}
}

func (m *model) setRate(n, d int64) {
	m.note()
	m.n, m.d = n, d
	// The level is kept in whole parts of 1/d, rounded down; what it has been, rounded up, or what comes back for it
	// would be a part too much.
	whole := func(level *big.Rat, up int64) {
		parts := new(big.Rat).Mul(level, rat(d))
		q := new(big.Int).Quo(parts.Num(), parts.Denom())
		level.SetFrac(q.Add(q, big.NewInt(up)), big.NewInt(d))
	}
	whole(m.level, 0)
	for _, level := range m.past {
		whole(level, 1)
	}
	for _, p := range m.told {
		p.over = new(big.Rat)
	}
}
