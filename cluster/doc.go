// Package cluster is a token bucket for many processes: one limit, kept in Redis, for which callers wait in line.
//
//	limiter, err := cluster.New(client, cluster.Config{Name: "payments api", Rate: sluice.PerSecond(50), Burst: 5})
//	...
//	if err := limiter.Wait(ctx, 1); err != nil {
//		return err // ctx ended, or its deadline is nearer than the turn, or Redis is out: nothing was granted
//	}
//
// # What is guaranteed
//
// In any window of length w all processes together let at most burst + rate·w units go, for any rate up to 4·10⁹/s,
// exactly: time is counted in whole microseconds and a remainder, and no float decides anything. A call takes its units in
// Redis in the trip in which it asks; there is no polling. The answer is a place in time, and it is slept to on the
// monotonic clock of the process, so the clocks of clients never matter. The way to Redis and back makes a
// start late, never early; a start that comes late can stand closer to the next one. Within a process turns come in the
// order of the calls, between processes in the order in which they reach Redis.
//
// Turns belong to the process that took them. When a caller leaves (its ctx ends, a Reservation is cancelled), those
// behind it in the same process move up at once, and what is left over serves the next who comes. The end of the
// debt goes back to Redis as long as no other process has come after it. What lies before another process's turn and finds
// nobody in its own process in time is lost: with callers that keep coming that is next to nothing. A process that
// dies loses what it held; that passes by itself. A Reservation that is cancelled after its turn gives back what the
// time since has not made up, counted from its own turn.
//
// # What it costs
//
// One trip for each call that comes alone. Callers who come while a trip is under way share the next: with 50 that is
// some 0.03 trips a call, with 500 some 0.002. Deadlines and refusals travel along; a batch of which
// somebody must be refused takes a second trip for the others. A Limiter keeps one trip under way and one
// timer. In Redis it is one short string, whatever the rate and however many wait, which lives for as
// long as anything is owed and a second more. The script calls TIME, GET and SET on one key, so Redis
// Cluster needs no hash tag. It is sent by EVALSHA, and by EVAL where the server does not know it.
//
// # When Redis is out
//
// Redis is out when a trip fails by the network, takes longer than Config.Timeout, or is answered by a server that
// cannot decide (READONLY, LOADING, OOM, CLUSTERDOWN and their like). Then no call waits for it any more: Config.Outage
// says whether calls get ErrOutage, go, or are limited by this process alone, and a probe that takes nothing finds out
// when it is back and can be written, within a quarter of a second; where the connection has died silently, within the
// client's ReadTimeout. Turns that a process owns already are kept. Health tells all of that. A script that fails,
// CROSSSLOT, WRONGTYPE, NOAUTH, NOPERM are mistakes: they end an outage, are returned as they are, whatever the policy, and are
// neither ErrOutage nor a Refusal.
//
// A ctx ends a call at once, also while Redis stalls. A trip is never repeated, whatever the client's MaxRetries: one that has
// timed out may have been carried out. When the answer comes late, what it brings belongs to the next caller; when it
// never comes, at most the units of that one trip are lost, and pass by themselves. Set the client's ReadTimeout to how long an
// answer is worth waiting for; it must not be none.
//
// FailLocal starts empty, at Rate and Burst divided by Processes, and charges to Redis afterwards what has not been made
// up since. Who is in its line when Redis is back asks Redis. A Reservation made by it stays with it, beside what Redis
// lets go, and is counted and charged once somebody sees that its turn has come, by Delay, Wait or Cancel.
//
// # Failover, eviction, clocks
//
// A replica that is promoted before it has heard of the last writes does not know of what they took: that is let go once
// more. In the window of the failover at most 2·burst + rate·w units go, less what was replicated; after that the limit
// holds. A key that is evicted or flushed forgets what is owed: at most one burst too much, and turns that are owned then may
// meet those of other processes. Keep the limit's Redis off volatile-* eviction, or Burst small.
//
// Redis' own clock is trusted, also in its pace: while it is slewed, a second is what it calls one. When it is set back,
// what is owed lasts longer, but never by more than the burst's worth and Horizon: more debt than that proves that the clock
// has stepped, and is cut. A pause cannot be told from a step and lasts longer by it. When the clock is set forward, as much
// is forgiven.
//
// # Changing the limit
//
// Who shares a Name should share Rate, Burst and Horizon. When they differ, as while a new version is rolled out, each
// call finds the units that the one before it has left, up to its own burst, and they cost what they cost at its own rate:
// a raised rate is there at once, a used-up burst lasts at most one new burst, a larger one has to gather, and a line
// that processes still wait in counts on, unit by unit. What is owed is rounded up each time, by at most a µs. Turns that
// are owned already keep their times; who comes after them goes after them. Together they never flow faster than the
// fastest of the rates, nor more at once than the largest burst.
//
// # Tested with
//
// redis-server 6.0.16, 7.0.15, 8.0.2 and 8.0.6, valkey-server 8.1.1 and 9.1.2, alone, as a cluster of one node and as a
// promoted replica, and miniredis 2.40. The script uses nothing that Redis 5 does not have: effects are replicated (the
// default since 5), TIME is read once, numbers are passed as text. Services that forbid TIME in scripts cannot be used.
package cluster
