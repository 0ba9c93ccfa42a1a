// Package keyed gives every user, tenant or route a limiter of its own, and never holds more of them than you allow.
//
//	limits, err := keyed.New(keyed.Config[string]{
//		New: func(user string) (sluice.Limiter, error) {
//			return waiter.New(waiter.Config{Rate: sluice.PerSecond(5), Burst: 10})
//		},
//		MaxKeys: 10_000,
//	})
//	...
//	err = limits.Wait(ctx, user, 1)
//	gate := limits.For(user) // the same, as a sluice.Limiter
//
// # Which key is dropped
//
// A key that is not there is made by Config.New. When MaxKeys are there, room is made for it:
//
//  1. A key at rest goes first: a token bucket that is full again, a leaky bucket that has run dry, with nobody in
//     line and no pause. Its limiter is as if new, so that dropping it forgets nothing.
//  2. If no key rests, IdleOnly refuses the new one with ErrFull. The RetryAfter is when the first of the busy keys
//     comes to rest. So whoever invents keys cannot shed what he owes: his old keys stay until they owe nothing.
//  3. Oldest drops the least recently used busy key that has no waiters instead, and with it what that key owes. It is
//     ErrFull only when somebody waits for every key. Take it where a stranger must never be turned away, and where
//     passing a limit by inventing keys is not to be feared.
//
// Keys are dropped for want of room only: a Map that is not full keeps what it has. A limiter that answers with an error,
// since it is closed or cannot be reached, is not known to be at rest.
//
// Looking for a key at rest does not mean looking at all: each is asked when it may have come to rest by what it told
// before and, for limits that are changed from outside, one key more in rotation. A call looks for a millisecond at
// most; what it has not found by then is refused as if busy, with that as its RetryAfter, and the next call goes on
// from there.
package keyed
