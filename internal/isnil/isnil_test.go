package isnil

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValue(t *testing.T) {
	for _, v := range []any{nil, (*int)(nil), map[string]int(nil), (func())(nil), (chan int)(nil), []int(nil)} {
		require.True(t, Value(v), "%T", v)
	}
	for _, v := range []any{0, new(int), map[string]int{}, func() {}, make(chan int), []int{}, struct{}{}, ""} {
		require.False(t, Value(v), "%T", v)
	}
}
