package queuerun

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/hibiken/asynq"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/law"
)

// A report is what a run has shown.
type report struct {
	accounts    []account
	limit       law.Limit   // of the limited ones
	stalls      []law.Stall // when the machine held starts up
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
	behind, must := "", ""
	if s.free > 0 {
		behind = fmt.Sprintf(" and, behind them, %d free ones", s.free)
		must = ", and the free ones must not wait for them"
	}
	fmt.Fprintf(w, "%d limited jobs (%v, burst %d)%s are dropped into one Asynq queue in %s, all at once.\n",
		s.jobs, s.rate, s.burst, behind, where)
	takes := "the limit itself takes no time that could be seen"
	if ideal := (law.Limit{Rate: s.rate, Burst: s.burst}).Ideal(s.jobs); ideal >= measurable {
		takes = fmt.Sprintf("the limited ones cannot take less than %v", seconds(ideal))
	}
	fmt.Fprintf(w, "One worker with %d slots then runs them: %s%s.\n", s.concurrency, takes, must)
}

// problems is empty when the run kept every promise.
func (r *report) problems() []string {
	var found []string
	failed := 0
	for _, a := range r.accounts {
		found = append(found, a.problems()...)
		failed += a.failed
		if a.kind == limited {
			if f := r.limit.Judge(a.starts, r.stalls); f.Verdict == law.Broken {
				found = append(found, fmt.Sprintf("%s jobs: the limit was broken: %s", a.kind, r.excess(f)))
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
	switch f := r.finding(); f.Verdict {
	case law.Delayed:
		fmt.Fprintf(w, "NOTE: %s. What came due meanwhile started together.\n", r.excess(f))
		how = "But for the machine's delays the limit held"
	case law.Unclear:
		fmt.Fprintf(w, "CANNOT SHOW that the limit held: %s. That is too long to tell a late start from one too many.\n", r.excess(f))
		how = "Whether the limit held cannot be shown"
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

// finding holds the limited jobs' starts against their limit.
func (r *report) finding() law.Finding {
	for _, a := range r.accounts {
		if a.kind == limited {
			return r.limit.Judge(a.starts, r.stalls)
		}
	}
	return law.Finding{}
}

// wrong says that a promise was not kept, or that nobody can say whether it was.
func (r *report) wrong() bool {
	return len(r.problems()) > 0 || r.finding().Verdict == law.Unclear
}

func (r *report) writeTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "jobs\tdone\tdeferred\tfailed\tarchived\tleft\tlost\tpeak in 1s\tallowed\ttime\tideal\t")
	for _, a := range r.accounts {
		l := law.Limit{Rate: sluice.Unlimited}
		if a.kind == limited {
			l = r.limit
		}
		fmt.Fprintf(t, "%d %s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%v\t%s\t\n",
			a.enqueued, a.kind, a.done, a.deferred, a.failed, a.archived, a.left, a.lost,
			law.Peak(a.starts), orDash(l.Allowed(0)), seconds(a.took()), idealOf(l, a))
	}
	t.Flush()
}

// excess says how many starts there were too many, and how far the machine is to blame.
func (r *report) excess(f law.Finding) string {
	return fmt.Sprintf("%d starts within %v of %v, allowed are %d; there this machine held the process up for %v, which explains %d more",
		f.Starts, law.Window, seconds(f.At), r.limit.Allowed(0), f.Late.Round(time.Millisecond), r.limit.Allowed(f.Late)-r.limit.Allowed(0))
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

// measurable is the least ideal that a run can be held against: below it the time is the handlers' and the queue's.
const measurable = 10 * time.Millisecond

// idealOf holds the time against the least that the limit allows for as many starts.
func idealOf(l law.Limit, a account) string {
	switch ideal := l.Ideal(len(a.starts)); {
	case ideal == 0:
		return "-"
	case ideal < measurable:
		return fmt.Sprintf("below %v", measurable)
	default:
		return fmt.Sprintf("%v (x %.2f)", seconds(ideal), float64(a.took())/float64(ideal))
	}
}

// seconds cuts what nobody reads.
func seconds(d time.Duration) time.Duration {
	if d == sluice.Never {
		return d
	}
	return d.Round(10 * time.Millisecond)
}
