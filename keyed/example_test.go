package keyed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/keyed"
	"github.com/fadf4e53/sluice/waiter"
)

// perUser lets each user do two things an hour.
func perUser(string) (sluice.Limiter, error) {
	return waiter.New(waiter.Config{Rate: sluice.Every(time.Hour), Burst: 2})
}

func ExampleMap_Try() {
	limits, err := keyed.New(keyed.Config[string]{New: perUser, MaxKeys: 10_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()
	for _, user := range []string{"ann", "ann", "ann", "bob"} {
		d, err := limits.Try(context.Background(), user, 1)
		fmt.Println(user, d.Allowed, err)
	}
	// Output:
	// ann true <nil>
	// ann true <nil>
	// ann false <nil>
	// bob true <nil>
}

func ExampleMap_For() {
	limits, err := keyed.New(keyed.Config[string]{New: perUser, MaxKeys: 10_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()
	ann := limits.For("ann") // to be given to whatever takes a sluice.Limiter
	fmt.Println(ann.Wait(context.Background(), 2), ann == limits.For("ann"), ann.Stats().Available)
	// Output: <nil> true 0
}

func ExampleMap_Wait() {
	limits, err := keyed.New(keyed.Config[string]{New: perUser, MaxKeys: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer limits.Close()
	ctx := context.Background()
	fmt.Println(limits.Wait(ctx, "ann", 2))
	err = limits.Wait(ctx, "bob", 2)
	fmt.Println(errors.Is(err, sluice.ErrFull), limits.Stats())
	// Output:
	// <nil>
	// true {1 0 1}
}

func ExampleNew() {
	_, err := keyed.New(keyed.Config[string]{New: perUser})
	fmt.Println(err)
	// Output: keyed: Config.MaxKeys is 0: must be at least 1: invalid
}
