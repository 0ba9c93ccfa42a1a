package waitrun

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
	"github.com/fadf4e53/sluice/cmd/demo/internal/law"
)

// A report is what a run has shown.
type report struct {
	settings
	tally
	units       uint64 // that the limiter says it granted
	stalls      []law.Stall
	interrupted bool
}

func (r report) limit() law.Limit { return law.Limit{Rate: r.rate, Burst: r.burst} }

// unused is how many turns had come by the last start and were taken by nobody.
func (r report) unused() int {
	if len(r.starts) == 0 || r.rate.IsUnlimited() {
		return 0
	}
	span := r.starts[len(r.starts)-1] - r.starts[0]
	turns := r.rate.UnitsIn(span)
	return int(min(max(0, turns+int64(r.burst-len(r.starts))), math.MaxInt32))
}

// excused is how many of them are the machine's doing: as many as come due while the last start is held up, and at most
// the one that the first start was late for.
func (r report) excused() (n int, late time.Duration) {
	for _, s := range r.stalls {
		late = max(late, s.To-s.From)
	}
	return int(min(r.rate.UnitsIn(late+time.Millisecond), math.MaxInt32)) + 1, late
}

// problems is empty when everything was as it should be.
func (r report) problems() []string {
	var found []string
	add := func(bad bool, format string, args ...any) {
		if bad {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	started := len(r.starts)
	add(r.missing > 0 || started+r.left+r.failed+r.missing != r.n, "%d goroutines came, %d started and %d left: %d are missing", r.n, started, r.left, r.missing)
	add(r.failed > 0, "%d goroutines got an error that is not their own giving up", r.failed)
	add(int(r.units) != started, "%d goroutines started, and the limiter counts %d units", started, r.units)
	f := r.limit().Judge(r.starts, r.stalls)
	add(f.Verdict == law.Broken, "the limit was broken: %d starts within %v, allowed are %d", f.Starts, law.Window, r.limit().Allowed(0))
	excused, late := r.excused()
	add(r.unused() > excused && late <= law.Patience, "%d turns passed unused; the machine explains %d", r.unused(), excused)
	return found
}

// unclear says why nothing is shown either way; "": it is.
func (r report) unclear() string {
	f := r.limit().Judge(r.starts, r.stalls)
	excused, late := r.excused()
	switch {
	case f.Verdict == law.Unclear:
		return fmt.Sprintf("%d starts within %v, allowed are %d, and the machine stood still for %v", f.Starts, law.Window, r.limit().Allowed(0), f.Late.Round(time.Millisecond))
	case r.unused() > excused && late > law.Patience:
		return fmt.Sprintf("%d turns passed unused, and the machine stood still for %v", r.unused(), late.Round(time.Millisecond))
	}
	return ""
}

// write says what was shown, and returns the exit status.
func (r report) write(w io.Writer) int {
	fmt.Fprintf(w, "\n%d came, %d started, %d gave up.\n", r.n, len(r.starts), r.left)
	if r.dodgers > 0 {
		fmt.Fprintf(w, "The turn of %d came in the moment in which they were to give up, and stands.\n", r.dodgers)
	}
	problems, unclear := r.problems(), r.unclear()
	for _, p := range problems {
		fmt.Fprintln(w, "WRONG:", p)
	}
	if unclear != "" {
		fmt.Fprintf(w, "CANNOT SHOW whether all is right: %s.\n", unclear)
	}
	if len(problems) > 0 || unclear != "" {
		return cli.Broken
	}
	fmt.Fprintf(w, "At most %d started within a second, allowed are %s. Turns that passed unused: %d.\n",
		law.Peak(r.starts), allowed(r.limit()), r.unused())
	if f := r.limit().Judge(r.starts, r.stalls); f.Verdict == law.Delayed {
		fmt.Fprintf(w, "NOTE: there this machine held the process up for %v, which explains %d more.\n",
			f.Late.Round(time.Millisecond), r.limit().Allowed(f.Late)-r.limit().Allowed(0))
	}
	if r.interrupted {
		fmt.Fprintln(w, "Interrupted: whoever still stood in line left, and took nothing.")
		return cli.Interrupted
	}
	if n := len(r.starts); r.left > 0 && n > 0 && r.starts[n-1] > r.leftAt {
		fmt.Fprintf(w, "The last one started after %v. Had the places of the %d who left stayed empty, it would have been %v.\n",
			round(r.starts[n-1]), r.left, round(r.limit().Ideal(r.n)))
	}
	return cli.OK
}

func allowed(l law.Limit) string {
	if n := l.Allowed(0); n < math.MaxInt {
		return fmt.Sprint(n)
	}
	return "any number"
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
