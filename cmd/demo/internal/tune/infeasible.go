package tune

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// impossible says which number cannot be kept, and which would do, each alone.
func (nd need) impossible() string {
	p, _ := nd.best()
	limit, limitDoes := nd.leastLimit()
	slots, slotsDo := nd.leastSlots()
	handlers := fmt.Sprintf("-slots %d (calls of %v)", nd.slots, nd.handler)
	culprit := fmt.Sprintf("-limit %v", nd.limit)
	switch {
	case slotsDo && !limitDoes:
		culprit = handlers
	case nd.slots > 0 && !limitDoes:
		culprit += " and " + handlers
	}
	var would []string
	if limitDoes {
		would = append(would, fmt.Sprintf("-limit %v", limit))
	}
	if slotsDo {
		would = append(would, fmt.Sprintf("-slots %d", slots))
	}
	if p.longest <= longestTolerated {
		would = append(would, fmt.Sprintf("-wait %v", up(p.longest)))
	}
	would = append(would, "fewer arrivals")
	return fmt.Sprintf("Impossible: with %s somebody must wait %v, and -wait tolerates %v. What would do: %s.",
		culprit, up(p.longest), nd.wait, strings.Join(would, ", or "))
}

// leastLimit is the least limit that would do, all else being equal; false: none.
func (nd need) leastLimit() (quota, bool) {
	n := sort.Search(most, func(i int) bool {
		other := nd
		other.limit.n = int64(i) + 1
		_, fits := other.best()
		return fits
	})
	return quota{int64(n) + 1, nd.limit.per}, n < most
}

// leastSlots is the least number of slots that would do, all else being equal; false: none, or they are no bound.
func (nd need) leastSlots() (int, bool) {
	const enough = 1_000_000
	if nd.slots == 0 {
		return 0, false
	}
	n := nd.slots + sort.Search(enough, func(i int) bool {
		other := nd
		other.slots = nd.slots + i
		_, fits := other.best()
		return fits
	})
	return n, n < nd.slots+enough
}

// up rounds a wait up to what is said: never to less than what is needed.
func up(d time.Duration) time.Duration {
	step := time.Millisecond
	if d > 10*time.Second {
		step = 100 * time.Millisecond
	}
	if short := d.Truncate(step); short < d {
		return short + step
	}
	return d
}
