package keyed

import (
	"fmt"
	"reflect"
)

// hasOddValues says whether K has values that cannot be keys. Most have none, and then no call needs to look.
func hasOddValues[K comparable]() bool { return odd(reflect.TypeFor[K]()) }

func odd(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128, reflect.Interface:
		return true
	case reflect.Array:
		return odd(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if odd(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// mistake says what is wrong with a key, if anything is. A Go map would panic on the one and keep the other for ever.
func mistake[K comparable](key K) string {
	switch {
	case !reflect.ValueOf(&key).Elem().Comparable():
		return fmt.Sprintf("key of type %T: must not hold what Go cannot compare", key)
	case key != key: // NaN, whatever it is wrapped in
		return fmt.Sprintf("key %v: must be equal to itself", key)
	}
	return ""
}
