package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func ExampleParseRate() {
	for _, text := range []string{"50/s", "100/2s", "1/250ms", "2000/day", "unlimited", "1.5/s"} {
		rate, err := sluice.ParseRate(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(rate)
	}
	// Output:
	// 50/s
	// 50/s
	// 4/s
	// 1/43.2s
	// unlimited
	// sluice: rate "1.5/s": units "1.5" must be a whole number from 1 to 9223372036854775807: invalid
}

func ExampleRate() {
	rate := sluice.PerSecond(3)
	fmt.Println(rate == sluice.Per(180, time.Minute))
	fmt.Println(rate.TimeFor(1), rate.TimeFor(3)) // rounded up, and no drift
	fmt.Println(rate.UnitsIn(24 * time.Hour))
	// Output:
	// true
	// 333.333334ms 1s
	// 259200
}

func ExampleAll() {
	second, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(3), Burst: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	day, err := waiter.New(waiter.Config{Rate: sluice.Per(2000, 24*time.Hour), Burst: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	both := sluice.All(second, day)
	for range 3 {
		d, err := both.Try(context.Background(), 1)
		fmt.Println(d.Allowed, err)
	}
	fmt.Println("taken from the other by the refusal:", second.Stats().Units-2)
	// Output:
	// true <nil>
	// true <nil>
	// false <nil>
	// taken from the other by the refusal: 0
}

func ExampleRefusal() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 5})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = limiter.Wait(context.Background(), 6)

	var no *sluice.Refusal
	switch {
	case errors.As(err, &no) && no.RetryAfter != sluice.Never:
		fmt.Println("come back in", no.RetryAfter)
	case errors.Is(err, sluice.ErrTooLarge):
		fmt.Println("never more than", no.Burst, "at once")
	}
	fmt.Println(err)
	// Output:
	// never more than 5 at once
	// sluice: 6 refused by 1/h, burst 5: more than can ever be granted at once; nothing was taken
}
