package waiter_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/waiter"
)

func ExampleLimiter_Wait() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(100), Burst: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	for range 5 { // two at once, then one each 10 ms
		if err := limiter.Wait(context.Background(), 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(time.Since(start) >= 30*time.Millisecond)
	// Output: true
}

func ExampleLimiter_Wait_deadline() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(limiter.Wait(ctx, 1))
	err = limiter.Wait(ctx, 1) // said at once, and nothing was taken
	var no *sluice.Refusal
	if errors.As(err, &no) {
		fmt.Println(no.Reason, no.RetryAfter.Round(time.Minute))
	}
	// Output:
	// <nil>
	// not due before the context's deadline 1h0m0s
}

func ExampleNewGroup() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(1000), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, _ := waiter.NewGroup(context.Background(), limiter)
	for range 3 {
		g.Go(func() error {
			fmt.Println("sent")
			return nil
		})
	}
	fmt.Println(g.Wait())
	// Output:
	// sent
	// sent
	// sent
	// <nil>
}

func ExampleLimiter_Reserve() {
	limiter, err := waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	now, _ := limiter.Reserve(ctx, 1)
	first, _ := limiter.Reserve(ctx, 1)
	second, _ := limiter.Reserve(ctx, 1)
	fmt.Println(now.Delay(), first.Delay().Round(time.Minute), second.Delay().Round(time.Minute))
	first.Cancel() // who stood behind moves up
	fmt.Println(second.Delay().Round(time.Minute))
	// Output:
	// 0s 1h0m0s 2h0m0s
	// 1h0m0s
}
