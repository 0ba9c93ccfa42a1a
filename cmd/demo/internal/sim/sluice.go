package sim

import (
	"context"
	"errors"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
	"github.com/fadf4e53/sluice/waiter"
)

// Bucket returns sluice's token bucket on this clock.
func Bucket(clock *Clock, c waiter.Config) (Limiter, error) {
	c.Now = clock.Now
	l, err := waiter.New(c)
	if err != nil {
		return nil, err
	}
	return &ours{limiter: l}, nil
}

// Pacer returns sluice's leaky bucket on this clock.
func Pacer(clock *Clock, c leaky.Config) (Limiter, error) {
	c.Now = clock.Now
	l, err := leaky.New(c)
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
