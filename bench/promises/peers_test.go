package main

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	juju "github.com/juju/ratelimit"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/sluicetest"
	"github.com/fadf4e53/sluice/waiter"
)

// TestPeer runs one peer through all cases, or, as the program beside it does, through one at a time: a case may hang
// or panic on them.
func TestPeer(t *testing.T) {
	if os.Getenv("PROMISES") == "" {
		t.Skip("the program in this folder runs it")
	}
	for name, kind := range map[string]sluicetest.Kind{
		"sluice":   {New: newSluice},
		"xtime":    {New: newXTime},
		"uber":     {New: newUber, Paced: true},
		"failsafe": {New: newFailsafe, Paced: true},
		"juju":     {New: newJuju},
	} {
		t.Run(name, func(t *testing.T) { sluicetest.Run(t, kind) })
	}
}

var errNotOffered = errors.New("not offered")

// none is what a limiter does not offer.
type none struct{}

func (none) Try(context.Context, int) (sluice.Decision, error) {
	return sluice.Decision{}, errNotOffered
}
func (none) Reserve(context.Context, int) (sluice.Reservation, error) { return nil, errNotOffered }
func (none) Pause(context.Context, time.Duration) error               { return errNotOffered }
func (none) Stats() sluice.Stats                                      { return sluice.Stats{} }

func newSluice(t testing.TB, r sluice.Rate, burst int) sluice.Limiter {
	l, err := waiter.New(waiter.Config{Rate: r, Burst: burst})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

type xTime struct {
	none
	l *rate.Limiter
}

func newXTime(_ testing.TB, r sluice.Rate, burst int) sluice.Limiter {
	return &xTime{l: rate.NewLimiter(rate.Limit(r.PerSecond()), burst)}
}

func (x *xTime) Wait(ctx context.Context, n int) error { return x.l.WaitN(ctx, n) }

func (x *xTime) Try(_ context.Context, n int) (sluice.Decision, error) {
	d := sluice.Decision{Allowed: x.l.AllowN(time.Now(), n)}
	if !d.Allowed {
		r := x.l.ReserveN(time.Now(), n)
		if !r.OK() {
			return d, &sluice.Refusal{Reason: sluice.ErrTooLarge, N: n, RetryAfter: sluice.Never}
		}
		d.RetryAfter = r.Delay()
		r.Cancel()
	}
	d.Remaining = int(max(math.Floor(x.l.Tokens()), 0))
	d.ResetAfter = time.Duration((float64(x.l.Burst()) - x.l.Tokens()) / float64(x.l.Limit()) * float64(time.Second))
	return d, nil
}

func (x *xTime) Reserve(_ context.Context, n int) (sluice.Reservation, error) {
	r := x.l.ReserveN(time.Now(), n)
	if !r.OK() {
		return nil, &sluice.Refusal{Reason: sluice.ErrTooLarge, N: n, RetryAfter: sluice.Never}
	}
	return xTimeReservation{r}, nil
}

type xTimeReservation struct{ *rate.Reservation }

func (r xTimeReservation) Wait(ctx context.Context) error {
	select {
	case <-time.After(r.Delay()):
		return nil
	case <-ctx.Done():
		r.Cancel()
		return ctx.Err()
	}
}

type uberLimiter struct {
	none
	l uber.Limiter
}

func newUber(_ testing.TB, r sluice.Rate, _ int) sluice.Limiter {
	n, period := r.Fraction()
	return &uberLimiter{l: uber.New(int(n), uber.Per(period), uber.WithoutSlack)}
}

func (u *uberLimiter) Wait(_ context.Context, n int) error {
	for range n {
		u.l.Take()
	}
	return nil
}

type failsafe struct {
	none
	l ratelimiter.RateLimiter[any]
}

func newFailsafe(_ testing.TB, r sluice.Rate, _ int) sluice.Limiter {
	n, period := r.Fraction()
	return &failsafe{l: ratelimiter.NewSmooth[any](uint(n), period)}
}

func (f *failsafe) Wait(ctx context.Context, n int) error { return f.l.AcquirePermits(ctx, uint(n)) }

func (f *failsafe) Try(_ context.Context, n int) (sluice.Decision, error) {
	return sluice.Decision{Allowed: f.l.TryAcquirePermits(uint(n))}, nil
}

type jujuBucket struct {
	none
	b *juju.Bucket
}

func newJuju(_ testing.TB, r sluice.Rate, burst int) sluice.Limiter {
	return &jujuBucket{b: juju.NewBucketWithRate(r.PerSecond(), int64(burst))}
}

func (j *jujuBucket) Wait(_ context.Context, n int) error { j.b.Wait(int64(n)); return nil }

func (j *jujuBucket) Try(_ context.Context, n int) (sluice.Decision, error) {
	if j.b.Available() < int64(n) {
		return sluice.Decision{}, nil
	}
	return sluice.Decision{Allowed: j.b.TakeAvailable(int64(n)) == int64(n), Remaining: int(j.b.Available())}, nil
}
