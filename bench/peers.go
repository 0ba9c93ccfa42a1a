package main

import (
	"context"
	"math"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	juju "github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

// A subject is a limiter under measurement. A nil function is what it does not offer.
type subject struct {
	wait func(ctx context.Context) error
	try  func() bool
}

// A peer makes subjects of perSecond and burst, with nothing in the bucket if it can.
type peer struct {
	name  string
	make  func(perSecond, burst int) subject
	clamp bool // its burst cannot be set
}

// peers are what is compared, ourselves first.
var peers = []peer{
	{name: "sluice/waiter", make: newSluice},
	{name: "x/time/rate", make: newXTime},
	{name: "uber-go/ratelimit", make: newUber, clamp: true},
	{name: "failsafe-go", make: newFailsafe, clamp: true},
	{name: "juju/ratelimit", make: newJuju},
}

func newSluice(perSecond, burst int) subject {
	l, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(int64(perSecond)), Burst: burst})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	return subject{
		wait: func(ctx context.Context) error { return l.Wait(ctx, 1) },
		try: func() bool {
			d, err := l.Try(ctx, 1)
			return err == nil && d.Allowed
		},
	}
}

func newXTime(perSecond, burst int) subject {
	l := rate.NewLimiter(rate.Limit(perSecond), burst)
	return subject{wait: l.Wait, try: l.Allow}
}

// newUber has no context, no way to try, and starts without a burst.
func newUber(perSecond, _ int) subject {
	l := uber.New(perSecond)
	return subject{wait: func(context.Context) error { l.Take(); return nil }}
}

// newFailsafe is the smooth kind: it has no burst to set. The bursty kind lets a period's worth go at once.
func newFailsafe(perSecond, _ int) subject {
	l := ratelimiter.NewSmooth[any](uint(perSecond), time.Second)
	return subject{wait: l.AcquirePermit, try: l.TryAcquirePermit}
}

// newJuju has no context.
func newJuju(perSecond, burst int) subject {
	l := juju.NewBucketWithRate(float64(perSecond), int64(burst))
	return subject{
		wait: func(context.Context) error { l.Wait(1); return nil },
		try:  func() bool { return l.TakeAvailable(1) == 1 },
	}
}

// always is a rate and a burst at which a token is free.
const always, plenty = 1_000_000_000, math.MaxInt32
