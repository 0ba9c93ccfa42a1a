package cluster

import (
	"slices"

	"github.com/fadf4e53/sluice/internal/exact"
)

// owned is what this process has taken in Redis and not used yet: stretches of the time that the limit's debt covers,
// in parts, in order.
//
// A start of n units at the time s is lawful when it uses up n units' worth of owned time that lies within s and s plus the
// burst's worth. For no two starts use the same time, so those in any window of length w used time in a stretch of
// length w plus the burst's worth: burst + rate·w units at most, whichever process they are in. Owned time that has
// passed is therefore lost, and all that matters for moving up into what a leaver left is where it lies.
type owned struct {
	spans []span
	total exact.U128
}

type span struct{ lo, hi exact.U128 }

// reaches says whether time later than this is owned.
func (o *owned) reaches(at exact.U128) bool {
	last := len(o.spans) - 1
	return last >= 0 && at.Less(o.spans[last].hi)
}

// put adds what Redis has just given, or what was not used after all.
func (o *owned) put(s span) {
	if !s.lo.Less(s.hi) {
		return
	}
	o.total = o.total.Add(s.hi.Sub(s.lo))
	if !o.reaches(s.lo) { // mostly: at the end
		if last := len(o.spans) - 1; last >= 0 && o.spans[last].hi == s.lo {
			o.spans[last].hi = s.hi
		} else {
			o.spans = append(o.spans, s)
		}
		return
	}
	i, _ := slices.BinarySearchFunc(o.spans, s, func(a, b span) int {
		if a.lo.Less(b.lo) {
			return -1
		}
		return 1
	})
	if i > 0 && o.spans[i-1].hi == s.lo {
		o.spans[i-1].hi = s.hi
		i--
	} else {
		o.spans = slices.Insert(o.spans, i, s)
	}
	if i+1 < len(o.spans) && o.spans[i].hi == o.spans[i+1].lo {
		o.spans[i].hi = o.spans[i+1].hi
		o.spans = slices.Delete(o.spans, i+1, i+2)
	}
}

// A plan is a start and the time that it uses: need parts from spans[first] on.
type plan struct {
	at    exact.U128
	first int
	need  exact.U128
}

// plan returns the earliest lawful start of need parts at or after floor.
func (o *owned) plan(need, floor, full exact.U128) (plan, bool) {
	for i := range o.spans {
		rest := need
		for j := i; ; j++ {
			if j == len(o.spans) {
				return plan{}, false
			}
			long := o.spans[j].hi.Sub(o.spans[j].lo)
			if long.Less(rest) {
				rest = rest.Sub(long)
				continue
			}
			end := o.spans[j].lo.Add(rest)
			at := end.Sub(full)
			if o.spans[i].lo.Less(at) {
				break // what lies at i has passed by then: begin with the next
			}
			if at.Less(floor) {
				at = floor
			}
			return plan{at, i, need}, true
		}
	}
	return plan{at: floor}, need == exact.U128{}
}

// take uses up what p says, and returns it.
func (o *owned) take(p plan) []span {
	o.total = o.total.Sub(p.need)
	var used []span
	i, rest := p.first, p.need
	for rest != (exact.U128{}) {
		s := &o.spans[i]
		if long := s.hi.Sub(s.lo); rest.Less(long) {
			used = append(used, span{s.lo, s.lo.Add(rest)})
			s.lo = s.lo.Add(rest)
			break
		} else {
			used = append(used, *s)
			rest = rest.Sub(long)
			i++
		}
	}
	if p.first == 0 {
		o.spans = o.spans[i:] // mostly: no copy
	} else {
		o.spans = slices.Delete(o.spans, p.first, i)
	}
	return used
}

// clip loses what lies before now.
func (o *owned) clip(now exact.U128) {
	for len(o.spans) > 0 && o.spans[0].lo.Less(now) {
		s := &o.spans[0]
		if now.Less(s.hi) {
			o.total = o.total.Sub(now.Sub(s.lo))
			s.lo = now
			return
		}
		o.total = o.total.Sub(s.hi.Sub(s.lo))
		o.spans = o.spans[1:]
	}
}

// tail cuts up to most parts off the end, if the end is there.
func (o *owned) tail(end, most exact.U128) exact.U128 {
	last := len(o.spans) - 1
	if last < 0 || o.spans[last].hi != end {
		return exact.U128{}
	}
	s := &o.spans[last]
	cut := exact.Least(most, s.hi.Sub(s.lo))
	s.hi = s.hi.Sub(cut)
	o.total = o.total.Sub(cut)
	if s.hi == s.lo {
		o.spans = o.spans[:last]
	}
	return cut
}

// shift moves all by so many parts towards the past.
func (o *owned) shift(by exact.U128) {
	for i := range o.spans {
		o.spans[i] = span{o.spans[i].lo.Sub(by), o.spans[i].hi.Sub(by)}
	}
}

func (o *owned) clone() owned { return owned{slices.Clone(o.spans), o.total} }
