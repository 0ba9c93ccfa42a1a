package line

import (
	"slices"

	"github.com/fadf4e53/sluice/internal/exact"
)

// slots are the starts that a pacer's Try has told: they stay where they are, whatever happens to those in line.
type slots struct {
	list  []*place // by turn
	units exact.U128
	// holed says that the line and the slots may no longer follow each other without a gap, so that the sum of
	// what is ahead does not tell a turn any more. It ends with the last slot.
	holed bool
}

func (s *slots) add(p *place) {
	i := len(s.list)
	for i > 0 && s.list[i-1].turn > p.turn {
		i--
	}
	s.list = slices.Insert(s.list, i, p)
	s.units = s.units.Add(exact.U128{Lo: uint64(p.n)})
}

func (s *slots) remove(p *place) {
	if s.list[0] == p {
		s.list[0] = nil
		s.list = s.list[1:]
	} else if i := slices.Index(s.list, p); i >= 0 {
		s.list = slices.Delete(s.list, i, i+1)
	}
	s.units = s.units.Sub(exact.U128{Lo: uint64(p.n)})
	if len(s.list) == 0 {
		s.list, s.holed = nil, false
	}
}

// start moves b on to p's turn. If the water ran out before, the fraction of a nanosecond is not carried on.
func (s *slots) start(b *exact.Bucket, p *place) {
	if b.When(b.Full()) < p.turn {
		b.Advance(p.turn, b.Full())
	} else {
		b.Run(p.turn)
	}
}

// turnLocked returns the next turn if p is at the head, b is the bucket and list are the slots to come; with the
// first slot, if that is next. p goes before a slot only if the slot then finds the bucket as full as it was told.
func (l *Line) turnLocked(b *exact.Bucket, list []*place, p *place) (int64, *place) {
	if p == nil {
		return list[0].turn, list[0]
	}
	full := b.Full()
	c := *b
	c.Advance(l.paused, full)
	due := max(l.paused, c.When(full))
	if len(list) == 0 {
		return due, nil
	}
	if due <= list[0].turn {
		c.Run(list[0].turn)
		if c.Has(c.Parts(uint64(p.n)).Add(full).Add(list[0].over)) {
			return due, nil
		}
	}
	return list[0].turn, list[0]
}

// planLocked returns when p will go, which stands in the line or would join it now, by playing through what is to come.
// For a newcomer without units that is when all is over.
func (l *Line) planLocked(p *place) int64 {
	b, list := l.bucket, l.slots.list
	for q := l.head; ; q = q.next {
		if q == nil {
			q = p
		}
		due, slot := l.turnLocked(&b, list, q)
		for slot != nil || q.n == 0 && len(list) > 0 {
			l.slots.start(&b, list[0])
			b.Take(b.Parts(uint64(list[0].n)))
			list = list[1:]
			due, slot = l.turnLocked(&b, list, q)
		}
		l.runLocked(&b, due, b.Full())
		if q == p {
			p.over = b.Level().Sub(b.Full())
			return due
		}
		b.Take(b.Parts(uint64(q.n)))
	}
}

// planRoomLocked returns when n more units fit into a pacer's bucket, by playing through what is to come. Starting
// changes nothing about that, and neither does time while there is no water to run out.
func (l *Line) planRoomLocked(n int) int64 {
	b, list, q := l.bucket, l.slots.list, l.head
	outside := l.units.Add(l.slots.units)
	for {
		need := b.PartsOf(outside.Add(exact.U128{Lo: uint64(n)}))
		room := int64(never)
		if !b.Full().Less(need) {
			room = b.When(need)
		}
		if q == nil && len(list) == 0 {
			return room
		}
		due, next := l.turnLocked(&b, list, q)
		if room <= due || due == never {
			return room
		}
		if next != nil {
			l.slots.start(&b, next)
			list = list[1:]
		} else {
			l.runLocked(&b, due, b.Full())
			next, q = q, q.next
		}
		b.Take(b.Parts(uint64(next.n)))
		outside = outside.Sub(exact.U128{Lo: uint64(next.n)})
	}
}
