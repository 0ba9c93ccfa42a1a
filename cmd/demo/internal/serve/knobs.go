package serve

import "fmt"

// The most that each knob can be turned to.
const (
	maxRate     = 500
	maxBurst    = 200
	maxCapacity = 5000
	maxArrivals = 200
)

// knobs are what the sliders turn.
type knobs struct {
	Rate     int `json:"rate"`     // starts a second
	Burst    int `json:"burst"`    // starts at once
	Capacity int `json:"capacity"` // jobs in line
	Arrivals int `json:"arrivals"` // jobs a second
}

// check names the first knob that is out of its range.
func (k knobs) check() error {
	for _, c := range []struct {
		name               string
		value, least, most int
	}{
		{"rate", k.Rate, 1, maxRate}, {"burst", k.Burst, 1, maxBurst},
		{"capacity", k.Capacity, 0, maxCapacity}, {"arrivals", k.Arrivals, 0, maxArrivals},
	} {
		if c.value < c.least || c.value > c.most {
			return fmt.Errorf("%s %d: must be from %d to %d", c.name, c.value, c.least, c.most)
		}
	}
	return nil
}
