// Package sluice is the vocabulary of limiters that make work wait its turn: Rate, Limiter, Decision, Refusal, and
// All, which joins limits that must all agree.
//
// The limiters themselves live in packages of their own and all keep the Limiter contract:
//
//   - waiter: a token bucket in one process. Bursts go at once, the rest waits in line.
//   - leaky: a leaky-bucket pacer in one process. Starts are evenly spaced, idle time is not saved up.
//   - keyed: one limiter per key (user, address, tenant), a bounded number of them.
//   - cluster: a token bucket in Redis, one for many processes.
//
// Package queue paces an Asynq worker by any of them, httplimit holds HTTP requests to them, and metrics shows them to
// Prometheus. Package sluicetest checks that a Limiter of your own keeps the contract.
//
// # The law
//
// A Rate is n units per period D, an exact fraction. For every sequence of calls, the units granted in any window of
// length w are at most
//
//	burst + ⌊n·w/D⌋
//
// and what waits goes at the first whole nanosecond at which that allows it: never one early, never one late. While
// somebody waits the fraction of a nanosecond is carried on, so that a rate like 3/s never drifts; to the letter the
// window is then w + 1 ns long. A window in which the rate or the burst was changed has the sum of what each allowed
// while it held. Two things may add to it: a caller whom the timer woke late may catch up by that much and no more,
// once; and a limiter that was told to let more than its burst through lets it go when as much has gathered.
//
// What is not promised: that work *runs* at that moment. The clock is exact, the operating system's timers and Go's
// scheduler are not, and a start that comes late can stand closer to the next one. A token bucket after idling lets burst
// go at once and burst + rate in the first second: "60 per minute" is an average, not a window that begins at the full
// minute.
package sluice
