package compare

import (
	"slices"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/sim"
)

// A pattern is a way in which callers arrive, in proportion to the limit.
type pattern struct {
	name, title string
	about       string
	make        func(limit int) []sim.Arrival
}

var patterns = []pattern{
	{"edges", "Bursts at the edge of a second",
		"The whole limit in the 50 ms before a full second and once more in the 50 ms after it, every 2 s", edges},
	{"pulse", "A pulse", "Twenty times the limit, evenly, for one second, and nothing after it", pulse},
	{"herd", "A cron herd that hangs up",
		"Twice the limit at once, of whom three in four hang up after 0.4 s; 0.1 s later the limit once more", herd},
	{"steady", "Steady, below the limit", "Four fifths of the limit, evenly spaced", steady},
}

// even returns n arrivals from at on, spread over length.
func even(n int, at, length time.Duration) []sim.Arrival {
	all := make([]sim.Arrival, n)
	for i := range all {
		all[i].At = at + length*time.Duration(i)/time.Duration(n)
	}
	return all
}

func steady(limit int) []sim.Arrival {
	return even(limit*4, 0, 5*time.Second)
}

func pulse(limit int) []sim.Arrival {
	return even(20*limit, 500*time.Millisecond, time.Second)
}

func edges(limit int) []sim.Arrival {
	const near = 50 * time.Millisecond
	var all []sim.Arrival
	for edge := time.Second; edge <= 5*time.Second; edge += 2 * time.Second {
		all = append(all, even(limit, edge-near, near)...)
		all = append(all, even(limit, edge, near)...)
	}
	return all
}

func herd(limit int) []sim.Arrival {
	const first, second = 500 * time.Millisecond, time.Second
	all := slices.Repeat([]sim.Arrival{{At: first}}, 2*limit)
	for i := range all {
		if i%4 != 0 {
			all[i].Patience = 400 * time.Millisecond
		}
	}
	return append(all, slices.Repeat([]sim.Arrival{{At: second}}, limit)...)
}
