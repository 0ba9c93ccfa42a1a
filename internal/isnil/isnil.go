// Package isnil finds the nil that an interface hides.
package isnil

import "reflect"

// Value says whether v is nil or holds a nil pointer, map, func, chan or slice: the limiter that a map did not have,
// say, which is no nil interface any more.
func Value(v any) bool {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Chan, reflect.Slice:
		return r.IsNil()
	}
	return false
}
