// Package waiter is a token bucket for the goroutines of one process: what exceeds the rate waits its turn in line.
//
//	limiter, err := waiter.New(waiter.Config{Rate: sluice.PerSecond(50), Burst: 10})
//	...
//	if err := limiter.Wait(ctx, 1); err != nil {
//		return err // ctx ended, or its deadline is nearer than the turn: nothing was taken
//	}
//
// Group is an errgroup that takes a unit before each of its functions. Package leaky is the sibling for a downstream that
// takes no burst at all, and package cluster for a limit that many processes share.
//
// # What to know before choosing numbers
//
// A token bucket that has rested lets Burst units go at once, and Burst + Rate in the first second after. If the other side
// counts in windows of its own, stay below its limit by the Burst. With Burst 1 starts are 1/Rate apart while somebody
// waits, and that is exact over any time: a loop of Waits reaches 0.996 of 30,000/s, where timers alone would not.
//
// A call that finds a token costs 40 ns. A refused Try costs 110 ns. A caller in line costs a goroutine's stack and a few
// hundred bytes; when he leaves, nobody behind him is woken for it, whatever the length of the line.
//
// # Errors
//
//   - ctx's own error, unwrapped: ctx ended before the turn. The place went to those behind.
//   - *sluice.Refusal: sluice.ErrDeadline, ErrMaxWait and ErrFull with the wait that was needed, ErrTooLarge and
//     ErrClosed, which no waiting helps.
//   - sluice.ErrInvalid: a mistake of the caller: n < 0, a nil ctx, a Limiter that New did not make.
//
// On each of them nothing was taken.
package waiter
