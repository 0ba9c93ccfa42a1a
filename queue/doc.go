// Package queue paces an Asynq worker: work waits for its turn, and none of it is dropped, failed or counted for waiting.
//
//	gate, err := queue.NewGate(queue.Config{Limiter: limit})
//	...
//	srv := asynq.NewServer(redis, gate.Configure(asynq.Config{Concurrency: 10}))
//	mux := asynq.NewServeMux()
//	mux.Use(gate.Middleware)
//	...
//	srv.Stop(); gate.Drain(); srv.Shutdown() // milliseconds
//
// # What is promised
//
// An earlier promise beats a later one where they meet.
//
//  1. Never more than the limit, in any window. A task that returns passes the limiter again. Starts are limited, not
//     how many run at once.
//  2. A task that is handed back uses no retry, counts as no failure and is not told to the ErrorHandler. A task on its
//     last attempt (MaxRetry(0) too) would be archived by Asynq whatever it returned, so it waits in place instead,
//     whatever that holds up.
//  3. While work waits, the limit does not stand idle.
//  4. Under Config.Route, with Redis, work that is not limited is held up by work that is no longer than it takes to look
//     at the tasks before it once: Asynq is first in, first out.
//  5. Under Config.Limiter all waits in place and nothing is handed back, but for MaxWait or a task's own deadline.
//  6. Waiting uses at most half of the time that a task's Timeout and Deadline leave it. A task is not deferred beyond
//     its Deadline: it is back two seconds before, and if it still has no turn it fails with sluice.ErrDeadline.
//  7. Drain gives worker slots and places back at once.
//  8. Backoff stops a limiter for all who share it.
//
// A limiter that fails (closed, full, cannot be reached) defers the task. Only sluice.ErrTooLarge and sluice.ErrInvalid,
// which no waiting helps, are failures of the task.
//
// # How far Asynq allows it
//
// A deferral lives in Asynq's retry set, in whole seconds, and looks like a retry there: Inspector's actions on retries
// meet it too, and the task's LastErr says "queue: deferred". Tasks that come back in the same second have lost their
// order. With Config.Redis the Gate calls them itself, first come first served for each limiter, and Asynq's own clock
// is only for what another process, now dead, has deferred. To call them it moves them from Asynq's retry set to its
// pending list by the keys that asynq v0.26 uses, since Inspector.RunTask would also run what was completed or archived.
//
// Unique: Asynq does not extend the lock of a task that is deferred. Its TTL must cover the longest wait, or a twin is
// let in. Timeout: it begins anew with each return. Asynq cuts it to whole seconds; below one it becomes 30 minutes.
// Retention: a task that was deferred and then succeeded keeps its LastErr. Groups: what the aggregator makes is a task
// like any other. Crash: a task that waits in place in a process that dies is Asynq's to recover, which takes a minute,
// counts a retry, and archives a task on its last attempt; a deferred task is not exposed to this.
//
// # Choosing numbers
//
// Only Concurrency tasks are looked at at a time, so under one limit the longest wait in place is Concurrency/rate.
// Handlers limit too: Concurrency slots of handlers that take d each start at most Concurrency/d tasks a second.
package queue
