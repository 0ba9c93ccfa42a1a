package exact

import "slices"

// maxPeaks bounds what Peaks remembers: half a megabyte, of which a Bucket that was full a moment ago needs nothing.
// Beyond it the newest marks share one memory, which errs towards giving back less.
const maxPeaks = 1 << 14

// Peaks remembers how full a Bucket has been since each of a number of marks, so that who gives units back after his
// turn gives no more than what the filling has not made up since: a bucket that was full in between would have
// spilled them.
//
// Only a level that is higher than all later ones needs memory, so the marks form a stack whose levels fall from the
// oldest to the newest. The zero Peaks is ready.
type Peaks struct {
	stack []peak
	marks uint64
}

type peak struct {
	mark  uint64 // the first of the marks that share this level
	level U128
}

// Mark sets a mark at this level, and returns it. Marks start at 1.
func (p *Peaks) Mark(level U128) uint64 {
	p.marks++
	if len(p.stack) < maxPeaks {
		p.stack = append(p.stack, peak{p.marks, level})
	}
	return p.marks
}

// Note says that the Bucket has reached this level. It must be told before each fall of the level, and before Since.
func (p *Peaks) Note(level, full U128) {
	if len(p.stack) > 0 { // mostly it is empty: keep this part small enough to be inlined
		p.note(level, full)
	}
}

func (p *Peaks) note(level, full U128) {
	i := len(p.stack)
	if !level.Less(full) {
		p.stack = p.stack[:0] // spilled: nothing from before can come back
		return
	}
	for i > 0 && !level.Less(p.stack[i-1].level) {
		i--
	}
	if i < len(p.stack) {
		p.stack[i].level = level
		p.stack = p.stack[:i+1]
	}
}

// Since returns the highest level since mark; full if it is not known any more.
func (p *Peaks) Since(mark uint64, full U128) U128 {
	if i := p.find(mark); i >= 0 {
		return p.stack[i].level
	}
	return full
}

// Gave says that what was taken at mark has been given back, as far as it was not made up: back parts. All levels since
// then are now what they would have been without that taking, so that two who give back do not both use one gap.
func (p *Peaks) Gave(mark uint64, back U128) {
	i := p.find(mark)
	if i < 0 {
		return
	}
	for k := i; k < len(p.stack); k++ {
		p.stack[k].level = p.stack[k].level.Add(back)
	}
	first := i
	for first > 0 && !p.stack[i].level.Less(p.stack[first-1].level) {
		first--
	}
	p.stack[first].level = p.stack[i].level
	p.stack = slices.Delete(p.stack, first+1, i+1)
}

// find returns where in the stack mark is; -1 if it has been forgotten.
func (p *Peaks) find(mark uint64) int {
	i, found := slices.BinarySearchFunc(p.stack, mark, func(k peak, mark uint64) int {
		switch {
		case k.mark < mark:
			return -1
		case k.mark > mark:
			return 1
		}
		return 0
	})
	if !found {
		i--
	}
	return i
}

// Rescale turns the levels into parts of 1/is, rounded up: less comes back, never more. Unlimited has no levels.
func (p *Peaks) Rescale(was, is uint64) {
	if was == 0 || is == 0 {
		p.stack = p.stack[:0]
	}
	for i := range p.stack {
		p.stack[i].level = Rescale(p.stack[i].level, was, is).Add(U128{0, 1})
	}
}
