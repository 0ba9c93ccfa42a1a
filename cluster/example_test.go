package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cluster"
)

func Example() {
	server, err := miniredis.Run() // yours is a real one
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer func() { _ = client.Close() }()

	limiter, err := cluster.New(client, cluster.Config{
		Name:  "payments api", // every process that uses this name shares the limit
		Rate:  sluice.Every(time.Minute),
		Burst: 2,
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = limiter.Close() }()

	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		switch err := limiter.Wait(ctx, 1); {
		case err == nil:
			fmt.Println("pay")
		case errors.Is(err, cluster.ErrOutage):
			fmt.Println("Redis is out")
		case errors.Is(err, sluice.ErrDeadline):
			fmt.Println("not within 30s")
		default:
			fmt.Println(err)
		}
		cancel()
	}
	// Output:
	// pay
	// pay
	// not within 30s
}
