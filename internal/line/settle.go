package line

import (
	"math"
	"time"

	"github.com/fadf4e53/sluice/internal/exact"
)

// needLocked returns the parts that must be in the bucket for n units to go.
func (l *Line) needLocked(n int) exact.U128 {
	if l.cfg.Pacer {
		return l.bucket.Full()
	}
	return l.bucket.Parts(uint64(n))
}

// limitLocked returns what may gather: a full bucket, or what the head needs if that is more.
func (l *Line) limitLocked() exact.U128 {
	if l.head != nil {
		return exact.Most(l.bucket.Full(), l.needLocked(l.head.n))
	}
	return l.bucket.Full()
}

// freeLocked says whether n units can go now, overtaking nobody.
func (l *Line) freeLocked(n int, now int64) bool {
	return l.head == nil && len(l.slots.list) == 0 && now >= l.paused && l.held == nil &&
		l.bucket.Has(l.needLocked(n))
}

// settleLocked brings the Line up to now: it grants every turn that has come, each at its own instant, so that a late
// look loses nothing of the rate.
func (l *Line) settleLocked(now int64) {
	if l.held != nil {
		l.bucket.Skip(now)
		return
	}
	for l.head != nil || len(l.slots.list) > 0 {
		due, first := l.nextLocked()
		// A clock that has run back does not keep waiting whoever finds enough, and the end of time never comes.
		if due > now && (due > l.bucket.At() || l.paused > now) || due == never {
			break
		}
		if first != nil {
			l.slots.start(&l.bucket, first)
			l.slots.remove(first)
			l.takeLocked(first)
			if l.cfg.Strict && first.asleep > 0 { // granted when it was due, as told, but what follows waits for it
				first.report, l.held = true, first
			}
			l.endLocked(first, granted)
			if l.held != nil {
				return
			}
			continue
		}
		p := l.head
		if l.cfg.Strict && p.asleep > 0 {
			// Granted when it is, not when it was due, and the flow stops until p has been seen to run.
			l.bucket.Advance(now, l.limitLocked())
			if _, slot := l.nextLocked(); slot != nil {
				continue // so late, it would come too close to what has been told
			}
			l.unlinkLocked(p)
			p.report, l.held = true, p
			l.grantLocked(p, now)
			return
		}
		l.runLocked(&l.bucket, due, l.limitLocked())
		l.unlinkLocked(p)
		if l.head == nil && len(l.slots.list) == 0 && p.asleep > 0 && due < now && l.cfg.Now == nil {
			p.report = true
			l.late = late{place: p, since: due}
		}
		l.grantLocked(p, due)
	}
	l.advanceLocked(now)
}

// advanceLocked moves the bucket on to now, past all turns that have come.
func (l *Line) advanceLocked(now int64) {
	full := l.bucket.Full()
	switch {
	case l.head != nil:
		l.runLocked(&l.bucket, now, l.limitLocked())
	case l.late.place != nil:
		l.bucket.Run(now)
	case now < l.late.until && full.Less(l.bucket.Level()):
		l.bucket.Skip(now)
	default:
		l.bucket.Advance(now, full)
	}
}

// runLocked moves b on to the instant t while somebody waits: nothing spills, but during a pause.
func (l *Line) runLocked(b *exact.Bucket, t int64, limit exact.U128) {
	b.Advance(min(t, l.paused), limit)
	b.Run(t)
}

// grantLocked gives p, which has left the line, what it waited for. Its turn was at due.
func (l *Line) grantLocked(p *place, due int64) {
	p.turn = due
	l.countLocked(p.n, due-p.joined)
	l.takeLocked(p)
	l.endLocked(p, granted)
}

// takeLocked takes p's units out of the bucket.
func (l *Line) takeLocked(p *place) {
	l.drawLocked(p.n)
	if p.kept {
		p.mark = l.peaks.Mark(l.bucket.Level())
	}
}

func (l *Line) drawLocked(n int) {
	l.peaks.Note(l.bucket.Level(), l.bucket.Full())
	l.bucket.Take(l.bucket.Parts(uint64(n)))
}

func (l *Line) countLocked(n int, waited int64) {
	l.stats.Granted++
	l.stats.Units = sum(l.stats.Units, uint64(n))
	l.stats.Waited += time.Duration(max(waited, 0))
	if l.stats.Waited < 0 {
		l.stats.Waited = math.MaxInt64
	}
}

// dueLocked returns when the bucket holds need beyond all that is ahead, if nothing else is taken: the sum says it
// without looking at those who are ahead one by one.
func (l *Line) dueLocked(ahead exact.U128, need, limit exact.U128) int64 {
	b := l.bucket
	b.Advance(l.paused, limit)
	return max(l.paused, b.When(l.bucket.PartsOf(ahead).Add(need)))
}

// nextLocked returns the next turn, and the slot whose it is, if it is not the head's.
func (l *Line) nextLocked() (int64, *place) {
	if len(l.slots.list) == 0 {
		return l.dueLocked(exact.U128{}, l.needLocked(l.head.n), l.limitLocked()), nil
	}
	return l.turnLocked(&l.bucket, l.slots.list, l.head)
}

// tailLocked returns when p would go if it joined now.
func (l *Line) tailLocked(p *place) int64 {
	if l.slots.holed {
		return l.planLocked(p)
	}
	need := l.needLocked(p.n)
	limit := l.limitLocked()
	if l.head == nil {
		limit = exact.Most(limit, need)
	}
	ahead := l.units.Add(l.slots.units)
	due := l.dueLocked(ahead, need, limit)
	if l.cfg.Pacer {
		b := l.bucket
		l.runLocked(&b, due, limit)
		p.over = b.Level().Sub(b.PartsOf(ahead)).Sub(need)
	}
	return due
}

// placeLocked returns when p, which stands in the line, will go.
func (l *Line) placeLocked(p *place) int64 {
	if len(l.slots.list) > 0 {
		return l.planLocked(p)
	}
	return l.dueLocked(l.aheadLocked(p), l.needLocked(p.n), l.limitLocked())
}

// aheadLocked returns the units ahead of p, which stands in the line: counted from the nearer end, because the line
// can be long, and mostly the newest ask.
func (l *Line) aheadLocked(p *place) exact.U128 {
	var ahead, behind exact.U128
	for q, b := l.head, p; ; q, b = q.next, b.next {
		if q == p {
			return ahead
		}
		ahead = ahead.Add(exact.U128{Lo: uint64(q.n)})
		behind = behind.Add(exact.U128{Lo: uint64(b.n)})
		if b.next == nil {
			return l.units.Sub(behind)
		}
	}
}

// armLocked sets the timer for the next turn, if anybody sleeps.
func (l *Line) armLocked(now int64) {
	if l.sleepers == 0 || l.held != nil {
		l.disarmLocked()
		return
	}
	due, _ := l.nextLocked()
	if due == l.armed {
		return
	}
	if due == never {
		l.disarmLocked()
		return
	}
	l.armed = due
	wait := span(now, due)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.fire)
	} else {
		l.timer.Reset(wait)
	}
}

func (l *Line) disarmLocked() {
	if l.armed != unarmed {
		l.timer.Stop()
		l.armed = unarmed
	}
}

// fire is what the timer calls.
func (l *Line) fire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.nowLocked()
	l.armed = unarmed
	l.settleLocked(now)
	l.armLocked(now)
	if l.cfg.Now != nil && l.armed != unarmed && span(now, l.armed) < time.Millisecond {
		l.timer.Reset(time.Millisecond) // such a clock may stand still: do not spin on it
	}
}
