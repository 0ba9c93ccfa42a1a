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
//     how many run at once. Under sluice.All each limit counts from its own turn: a window may see more starts, one
//     for each worker slot at most that waited for another limit. One that must hold exactly gets a Gate of its own, with
//     Config.Limiter, inside of the other; Configure is then called on both.
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
// A deferral lives in Asynq's retry set, in whole seconds, and looks like a retry there: the task's LastErr says "queue:
// deferred". Without Config.Redis it comes back by Asynq's clock: not before its time, up to a second (the whole one) and a
// tick of the forwarder (another) after it, and tasks that come back in the same second have lost their order.
//
// With Config.Redis the Gate calls the deferred tasks itself, in the order in which they were deferred, when the limiter's
// turn comes near; they start within a few milliseconds of it. Asynq's clock then is only for what a process that
// has died left behind: such a task comes two to four seconds after the turn it expected. To call a task the Gate moves it
// from Asynq's retry set to its pending list, and marks it in the task's hash, by the keys that asynq v0.26 uses, since
// Inspector.RunTask would also run what was completed or archived.
//
// Order: of 100 tasks under one limit with 10 slots, starts were 1.2 off their place on the mean and 4 at most: Asynq starts
// the first Concurrency of them together. Between processes there is none.
//
// Several processes: each calls what it deferred, and any of them may be given it. It passes the limiter of the process that
// runs it. Under a cluster limit they reach its rate together, at less than one deferral a task; the first few turns
// may be lost until they have learnt of each other.
//
//   - Unique: Asynq does not extend the lock of a task that is deferred, and offers no way to. Its TTL must cover the longest
//     wait, or a twin is let in; with Redis the Gate warns.
//   - TaskID: the task keeps it, and its ID stays taken while it is deferred.
//   - Timeout: it begins anew with each return. Asynq cuts it to whole seconds; below one it becomes 30 minutes.
//   - Deadline: Asynq does not call the handler after it, it counts a failure. What cannot start before fails with
//     sluice.ErrDeadline, as soon as the task would have to come back too late, and the log tells.
//   - Retention: a task that was deferred and then succeeded keeps its LastErr. What the handler wrote as result stays.
//   - Groups: what the aggregator makes is a task like any other. A member that Inspector.RunTask started goes back to its
//     group when it is deferred.
//   - Inspector: RunTask and RunAllRetryTasks bring deferred tasks early; they pass the limiter like any other. What is
//     archived or deleted while it is deferred stays so. PauseQueue keeps what is called meanwhile in the pending list, and
//     its turns are lost.
//   - Crash: a task that waits in place in a process that dies is Asynq's to recover, which takes a minute or two, counts a
//     retry, and archives a task on its last attempt; a deferred task is not exposed to this.
//
// # Choosing numbers
//
// Only Concurrency tasks are looked at at a time, so under one limit the longest wait in place is Concurrency/rate, and
// with MaxWait above that nothing is handed back. Handlers limit too: Concurrency slots of handlers that take d each
// start at most Concurrency/d tasks a second; the Gate warns where that keeps the limit from being reached. Under several
// limits leave MaxWait at 0: a quarter of the slots may then wait, half of them hold what was called, and the rest is free
// for other work. Called tasks wait up to 150 ms in a slot, so give a server at least four slots, and one more for every
// seven starts a second under limits.
//
// On two cores with Redis beside it a task that waits in place costs 14 Redis commands, Asynq's own, and a deferral some 20
// more. 1,000 tasks at 50/s take 20 s, as they should. Work under no limit starts within 75 ms of coming to an idle
// worker, whatever waits; 20,000 tasks of a slow limit before it are looked at in 4 s.
//
// # What it says
//
// In Config.Logger: at most once a minute how many tasks were handed back, and how many failed for their Deadline; once in a
// Gate's life that a server did not pass through Configure, that handlers are too slow for a limit, that MaxWait is too short
// without Redis, and that a Unique lock is too short. OnDefer is told every deferral, and how often the task was deferred by this process before.
package queue
