package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
)

// A report is what a run has shown.
type report struct {
	accounts    []account
	limit       limit         // of the limited ones
	late        time.Duration // by how much the machine held starts up
	left        map[asynq.TaskState]int
	counted     int // failures by Asynq's own books
	unasked     int // jobs that an interrupt kept from being enqueued
	interrupted bool
	cut         error // why the run was given up
}

func writeIntro(w io.Writer, s settings) {
	where := "an embedded Redis"
	if s.redis != "" {
		where = "the Redis at " + s.redis
	}
	fmt.Fprintf(w, "%d limited jobs (%v, burst %d) and, behind them, %d free ones are dropped into one Asynq queue in %s, all at once.\n",
		s.jobs, s.rate, s.burst, s.free, where)
	fmt.Fprintf(w, "One worker with %d slots then runs them: the limited ones cannot take less than %v, and the free ones must not wait for them.\n",
		s.concurrency, seconds(limit{s.rate, s.burst}.ideal(s.jobs)))
}

// problems is empty when the run kept every promise.
func (r *report) problems() []string {
	var found []string
	failed := 0
	for _, a := range r.accounts {
		found = append(found, a.problems()...)
		failed += a.failed
		if a.kind == limited {
			if r.limit.judge(a.starts, r.late) == broken {
				found = append(found, fmt.Sprintf("%s jobs: the limit was broken: %s", a.kind, r.excess(a)))
			}
		}
	}
	if r.counted > failed {
		found = append(found, fmt.Sprintf("Asynq counted %d failures where handlers had %d: a deferral was taken for one", r.counted, failed))
	}
	if r.cut != nil {
		found = append(found, fmt.Sprintf("given up: %v. Left in the queue: %s", r.cut, r.remains()))
	}
	return found
}

func (r *report) write(w io.Writer) {
	fmt.Fprintln(w)
	writeChart(w, r.accounts)
	fmt.Fprintln(w)
	r.writeTable(w)
	fmt.Fprintln(w)
	if r.interrupted {
		fmt.Fprintf(w, "Interrupted. Left in the queue: %s.", r.remains())
		if r.unasked > 0 {
			fmt.Fprintf(w, " Not enqueued any more: %d.", r.unasked)
		}
		fmt.Fprintln(w)
	}
	how := "The limit held in every window of a second"
	for _, a := range r.accounts {
		if a.kind == limited && r.limit.judge(a.starts, r.late) == delay {
			fmt.Fprintf(w, "NOTE: %s. What came due meanwhile started together.\n", r.excess(a))
			how = "But for the machine's delays the limit held"
		}
	}
	problems := r.problems()
	for _, p := range problems {
		fmt.Fprintln(w, "WRONG:", p)
	}
	switch {
	case len(problems) > 0:
	case r.interrupted:
		fmt.Fprintf(w, "%s, and nothing was lost.\n", how)
	default:
		fmt.Fprintf(w, "%s, and every job was done.\n", how)
	}
}

func (r *report) writeTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "jobs\tdone\tdeferred\tfailed\tarchived\tleft\tlost\tpeak in 1s\tallowed\ttime\tideal\t")
	for _, a := range r.accounts {
		l := limit{rate: sluice.Unlimited}
		if a.kind == limited {
			l = r.limit
		}
		fmt.Fprintf(t, "%d %s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%v\t%s\t\n",
			a.enqueued, a.kind, a.done, a.deferred, a.failed, a.archived, a.left, a.lost,
			peak(a.starts), orDash(l.allowed(0)), seconds(a.took()), idealOf(l, a))
	}
	t.Flush()
}

// excess says how many starts there were too many, and how far the machine is to blame.
func (r *report) excess(a account) string {
	return fmt.Sprintf("%d starts within %v, allowed are %d; this machine held the process up for as much as %v, which explains %d more",
		peak(a.starts), window, r.limit.allowed(0), r.late.Round(time.Millisecond), r.limit.allowed(r.late)-r.limit.allowed(0))
}

// remains says what is in the queue, whether or not there is any: an interrupt's reader wants to see the zeros.
func (r *report) remains() string {
	s := fmt.Sprintf("%d pending, %d scheduled, %d retry",
		r.left[asynq.TaskStatePending], r.left[asynq.TaskStateScheduled], r.left[asynq.TaskStateRetry])
	if n := r.left[asynq.TaskStateActive]; n > 0 {
		s += fmt.Sprintf(", %d active", n)
	}
	return s
}

func orDash(n int) string {
	if n == math.MaxInt {
		return "-"
	}
	return fmt.Sprint(n)
}

// idealOf holds the time against the least that the limit allows for as many starts.
func idealOf(l limit, a account) string {
	ideal := l.ideal(len(a.starts))
	if ideal == 0 {
		return "-"
	}
	return fmt.Sprintf("%v (x %.2f)", seconds(ideal), float64(a.took())/float64(ideal))
}

// seconds cuts what nobody reads.
func seconds(d time.Duration) time.Duration {
	if d == sluice.Never {
		return d
	}
	return d.Round(10 * time.Millisecond)
}
