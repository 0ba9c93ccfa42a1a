// Package metrics shows limiters to Prometheus.
//
//	observe := metrics.New()
//	prometheus.MustRegister(observe)
//
//	limiter := observe.Limiter("mail", bucket) // use this one from here on
//	observe.Gate("mail", func() metrics.GateStats { return metrics.GateStats(gate.Stats()) })
//	observe.Redis("mail", func() metrics.RedisHealth { return metrics.RedisHealth(shared.Health()) })
//
// # What is exported
//
// Of each name that was given to Limiter:
//
//	sluice_wait_seconds            histogram  how long granted calls have waited; 0 is one that went at once
//	sluice_granted_total           counter    calls granted
//	sluice_units_total             counter    units granted
//	sluice_refused_total           counter    calls refused, by reason
//	sluice_canceled_total          counter    calls that left the line because their context ended
//	sluice_errors_total            counter    calls neither granted nor refused: an outage, or a mistake
//	sluice_waiting                 gauge      calls in line now, and Reservations whose turn has not come
//	sluice_available_units         gauge      whole units that could be taken now
//
// of each Gate:
//
//	sluice_gate_started_total      counter    tasks that went on to their handler
//	sluice_gate_deferred_total     counter    tasks handed back to the queue
//	sluice_gate_waiting            gauge      tasks that wait in a worker slot now
//	sluice_gate_wait_seconds_total counter    time that started tasks have waited there
//
// and of each limit in Redis:
//
//	sluice_redis_up                gauge      0 during an outage
//	sluice_redis_outages_total     counter    outages that have begun
//
// The label limiter is the name. A refusal has a reason too: deadline, max_wait, full, too_large, closed, not_now for a
// Try that would have had to wait, and other for a reason that is a limiter's own. There is no label for a key: the
// limiters of all users share one name, and one series. Waits are seconds, in classic buckets from 1 ms to a minute,
// the first of which holds the calls that went at once, and as a native histogram where Prometheus asks for
// one. n == 0 costs nothing and is not counted, nor is a call whose context had ended before it came.
//
// In this folder, grafana.json is a dashboard of all of them, and alerts.yaml are three alerts.
//
// # What it costs
//
// A call that goes at once takes three quarters longer than a bare one: 25 to 65 ns, as the machine is (BenchmarkOverhead).
// Wait allocates 32 bytes. The clock is read only when a call lies down: a Limiter is taken to begin to wait when it first
// asks for its context's Done. One that waits without listening for that would show as never waiting. One that listens
// before it knows whether it must (a cluster.Limiter; a view of a keyed.Map over limiters that have no Close) shows no call
// as gone at once, but as one that waited for as long as the question took.
//
// # Reservations
//
// A Reservation counts as granted once its turn is seen to have come, by its owner or by the next scrape, and as having
// waited for what it was promised, or for less if it was found to have come sooner. Who sleeps on it has waited for as
// long as he slept. Cancelled before its turn it is canceled, afterwards it was granted; what comes back is not taken
// off the counters, which must not fall. So sluice_units_total can be more than the Stats of a limiter of which much is
// cancelled, or of one of several in sluice.All. There, observe what All returns.
//
// # Errors and concurrency
//
// Nothing here returns an error of its own: what is observed returns what it returns bare. Contexts, cancellation and
// ties are the Limiter's too. Any number of goroutines may use and scrape a Collector; it has no goroutine and no timer.
//
// Not promised: one instant for all numbers of a scrape; only that the calls granted and the waits observed are as many.
package metrics
