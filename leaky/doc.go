// Package leaky is a leaky-bucket pacer for the goroutines of one process: starts are evenly spaced, and idle time is
// not saved up for a burst.
//
//	pacer, err := leaky.New(leaky.Config{Rate: sluice.PerSecond(50), Capacity: 100})
//	...
//	if err := pacer.Wait(ctx, 1); err != nil {
//		return err // ErrFull: more than 100 units are waiting; nothing was poured
//	}
//
// Package waiter is the sibling for a downstream that takes a burst.
//
// # What to know before choosing numbers
//
// Capacity bounds what waits, and with it the longest wait: Capacity/Rate. What does not fit is refused with the time after
// which it does. Wait and Reserve pour into the bucket and start when all before them has run out; Try pours too, and its
// Decision.Delay says when the work is to start, so that an event loop need not block.
//
// A start that comes late (a timer, a busy machine) is caught up: the one after it comes at its own time, closer than
// 1/Rate. Strict counts from the late one instead, which costs the rate that much.
//
// # Errors
//
//   - ctx's own error, unwrapped: ctx ended before the turn. The water was taken out again.
//   - *sluice.Refusal: sluice.ErrFull and ErrDeadline with the wait, ErrTooLarge (more than Capacity) and ErrClosed, which
//     no waiting helps.
//   - sluice.ErrInvalid: a mistake of the caller: n < 0, a nil ctx, a Pacer that New did not make.
//
// On each of them nothing was poured.
package leaky
