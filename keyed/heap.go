package keyed

// An order is one of the two in which keys are dropped. It is an index into an entry's at and pos.
type order int

const (
	byRest order = iota
	byUse
)

// A lazyHeap has the entry with the smallest at on top. An entry that is used moves back in both orders; that is not done
// on each use, which would cost every call O(log n), but when the entry comes to the top: at is what was known then, and
// never too large. So each move is paid by a use.
type lazyHeap[K comparable] struct {
	order order
	list  []*entry[K]
}

func (h *lazyHeap[K]) top() *entry[K] {
	if len(h.list) == 0 {
		return nil
	}
	return h.list[0]
}

func (h *lazyHeap[K]) has(e *entry[K]) bool { return e.pos[h.order] >= 0 }

func (h *lazyHeap[K]) push(e *entry[K], at int64) {
	e.at[h.order], e.pos[h.order] = at, len(h.list)
	h.list = append(h.list, e)
	h.up(e)
}

func (h *lazyHeap[K]) remove(e *entry[K]) {
	if !h.has(e) {
		return
	}
	end := len(h.list) - 1
	last := h.list[end]
	h.list[end], h.list = nil, h.list[:end]
	if last != e {
		h.put(last, e.pos[h.order])
		h.fix(last)
	}
	e.pos[h.order] = -1
}

// set moves e to where at belongs.
func (h *lazyHeap[K]) set(e *entry[K], at int64) {
	e.at[h.order] = at
	h.fix(e)
}

func (h *lazyHeap[K]) fix(e *entry[K]) {
	h.up(e)
	h.down(e)
}

func (h *lazyHeap[K]) put(e *entry[K], i int) {
	h.list[i] = e
	e.pos[h.order] = i
}

func (h *lazyHeap[K]) up(e *entry[K]) {
	for i := e.pos[h.order]; i > 0; {
		i = (i - 1) / 2
		above := h.list[i]
		if above.at[h.order] <= e.at[h.order] {
			return
		}
		h.put(above, e.pos[h.order])
		h.put(e, i)
	}
}

func (h *lazyHeap[K]) down(e *entry[K]) {
	for {
		i := 2*e.pos[h.order] + 1
		if i >= len(h.list) {
			return
		}
		if i+1 < len(h.list) && h.list[i+1].at[h.order] < h.list[i].at[h.order] {
			i++
		}
		below := h.list[i]
		if e.at[h.order] <= below.at[h.order] {
			return
		}
		h.put(below, e.pos[h.order])
		h.put(e, i)
	}
}
