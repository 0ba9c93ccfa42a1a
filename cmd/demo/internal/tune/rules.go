package tune

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"
)

// A rule is a rule of thumb for one kind of service: which rate and which burst it would have.
type rule struct {
	service, text string
	rate, burst   float64 // a second; 0: the rule cannot be applied
}

// rules of thumb, with the user's numbers in them.
func (nd need) rules() []rule {
	usual, crest, takes := nd.mean(), float64(nd.crest(nd.limit.per))/nd.limit.per.Seconds(), nd.takes()
	pool := float64(nd.slots)
	return []rule{
		{"API gateway", "peak × 1.2, burst 2 × to 5 × rate", crest * 1.2, 2 * crest * 1.2},
		{"connection pool", "its size, burst × 1.5", pool, pool * 1.5},
		{"queue consumer", "what it can take, burst up to 10 × rate", takes, 10 * takes},
		{"login", "3 × usual, burst = rate", 3 * usual, 3 * usual},
	}
}

// takes is what the downstream takes, a second.
func (nd need) takes() float64 { return float64(nd.limit.n) / nd.limit.per.Seconds() }

// writeRules holds each rule against the downstream: what its fullest window would be after a rest.
func (nd need) writeRules(w io.Writer) {
	fmt.Fprintf(w, "Rules of thumb, with your numbers, and what each would let through in the fullest %v (yours takes %d):\n\n", nd.limit.per, nd.limit.n)
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tservice\trule\trate\tburst\tfullest")
	for _, r := range nd.rules() {
		if r.rate == 0 {
			fmt.Fprintf(t, "\t%s\t%s\t-\t-\tneeds -slots\n", r.service, r.text)
			continue
		}
		fmt.Fprintf(t, "\t%s\t%s\t%s\t%s\t%s\n", r.service, r.text, number(r.rate)+"/s", number(math.Ceil(r.burst)),
			nd.strain(math.Ceil(r.burst)+r.rate*nd.limit.per.Seconds()))
	}
	t.Flush()
}

// writeBursts shows what a burst does to this backend when a herd comes after a rest: the law is burst + rate.
func (nd need) writeBursts(w io.Writer, a advice) {
	fmt.Fprintf(w, "What a burst does to this backend, at its own rate of %v, when a herd comes after a rest:\n\n", nd.limit)
	t := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\tburst\t\tin the fullest %v\tworked off in\n", nd.limit.per)
	n := float64(nd.limit.n)
	fmt.Fprintf(t, "\t%d\tadvised, at %v\t%s\t-\n", a.burst, a.rate, nd.strain(float64(a.law(nd))))
	for _, times := range []float64{1, 10, 100} {
		fmt.Fprintf(t, "\t%s\t%.0f × rate\t%s\t%v\n", number(times*n), times, nd.strain(n+times*n), time.Duration(times)*nd.limit.per)
	}
	t.Flush()
	fmt.Fprintln(w, "\nThe average is the same in each line. What fells a backend is the second in which it comes.")
}

// law is the most starts in any window of the limit.
func (a advice) law(nd need) int64 {
	if a.burst == 1 {
		return a.within(nd.limit.per)
	}
	return a.rate.UnitsIn(nd.limit.per) + int64(a.burst)
}

func (nd need) strain(starts float64) string {
	of := starts / float64(nd.limit.n)
	switch says := fmt.Sprintf("%s = %.2f × what it takes", number(starts), of); {
	case of > 50:
		return says + ": felled"
	case of > 1:
		return says + ": too much"
	default:
		return says
	}
}

// number writes a large one in groups of three, a small one with what counts.
func number(f float64) string {
	if f < 10 && f != math.Trunc(f) {
		return fmt.Sprintf("%.2g", f)
	}
	text := fmt.Sprintf("%.0f", f)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
