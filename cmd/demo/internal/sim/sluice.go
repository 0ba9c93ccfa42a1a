package sim

import (
	"context"
	"errors"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

// Bucket returns sluice's token bucket on this clock. Who would wait longer than most is refused; 0: nobody is.
func Bucket(clock *Clock, rate sluice.Rate, burst int, most time.Duration) (Limiter, error) {
	l, err := waiter.New(waiter.Config{Rate: rate, Burst: burst, MaxWait: most, Now: clock.Now})
	if err != nil {
		return nil, err
	}
	return &ours{limiter: l}, nil
}

// Pacer returns sluice's leaky bucket on this clock.
func Pacer(clock *Clock, rate sluice.Rate, capacity int) (Limiter, error) {
	l, err := leaky.New(leaky.Config{Rate: rate, Capacity: capacity, Now: clock.Now})
	if err != nil {
		return nil, err
	}
	return &ours{limiter: l}, nil
}

// ours asks a sluice.Limiter by Reserve: Wait would sleep on the real clock.
type ours struct{ limiter sluice.Limiter }

func (o *ours) Ask() (Place, bool) {
	place, err := o.limiter.Reserve(context.Background(), 1)
	var refusal *sluice.Refusal
	if err != nil && !errors.As(err, &refusal) {
		panic(err) // a Limiter refuses one unit by no other means
	}
	return place, err == nil
}
