package leaky_test

import (
	"context"
	"fmt"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/leaky"
)

func ExamplePacer_Try() {
	pacer, err := leaky.New(leaky.Config{Rate: sluice.Every(1 << 30), Capacity: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		d, _ := pacer.Try(context.Background(), 1)
		fmt.Println(d.Allowed, d.Delay > 0, d.RetryAfter > 0)
	}
	// Output:
	// true false false
	// true true false
	// false false true
}

func ExampleNew() {
	_, err := leaky.New(leaky.Config{Rate: sluice.PerSecond(50)})
	fmt.Println(err)
	// Output: leaky: Config.Capacity is 0: must be at least 1: invalid
}
