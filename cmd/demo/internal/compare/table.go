package compare

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

const barWidth = 48 // characters of the longest bar

// columns of the table, in the terminal and on the page.
var heads = []string{"", "started", "refused", "hung up", "fullest second", "of the limit", "longest wait", "p99 wait"}

func (r result) cells(s settings) []string {
	return []string{
		r.short, fmt.Sprint(len(r.Starts)), fmt.Sprint(r.Refused), fmt.Sprint(r.Left), fmt.Sprint(r.peak),
		fmt.Sprintf("%.2f×", float64(r.peak)/float64(s.limit)), short(r.Longest()), short(r.Percentile(99)),
	}
}

func (sc scene) write(w io.Writer, s settings) {
	fmt.Fprintf(w, "%s (%s)\n%s: %d callers.\n\n", sc.title, sc.name, sc.about, len(sc.arrivals))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, strings.Join(heads, "\t")+"\t")
	for _, r := range sc.results {
		fmt.Fprintln(t, strings.Join(r.cells(s), "\t")+"\t")
	}
	t.Flush()
	sc.writeBars(w, s)
}

// writeBars draws the fullest second of each against the limit.
func (sc scene) writeBars(w io.Writer, s settings) {
	longest := s.limit
	for _, r := range sc.results {
		longest = max(longest, r.peak)
	}
	at := func(n int) int { return (n*barWidth + longest/2) / longest }
	mark := min(at(s.limit), barWidth-1)
	fmt.Fprintf(w, "\n  %14s  %s▼ the limit: %d in a second\n", "", strings.Repeat(" ", mark), s.limit)
	for _, r := range sc.results {
		says := ""
		switch {
		case r.broke(s):
			says = fmt.Sprintf("  %.2f times its limit", float64(r.peak)/float64(r.law(s)))
		case r.peak > s.limit:
			says = "  with its burst"
		}
		fmt.Fprintf(w, "  %14s  %s %d%s\n", r.short, bar(at(r.peak), mark), r.peak, says)
	}
	fmt.Fprintln(w)
}

// bar is n wide, with the mark showing through or standing to its right.
func bar(n, mark int) string {
	line := []rune(strings.Repeat("█", n))
	for len(line) <= mark {
		line = append(line, ' ')
	}
	line[mark] = '┊'
	if n > mark {
		line[mark] = '▓'
	}
	return string(line)
}

// verdict says what was seen. Only sluice's own limiters can be wrong here: that the others break is the point.
func verdict(w io.Writer, scenes []scene, s settings) int {
	status := cli.OK
	for i, l := range limiters {
		worst := 0.0
		for _, sc := range scenes {
			worst = max(worst, float64(sc.results[i].peak)/float64(l.law(s)))
		}
		switch {
		case worst > 1 && l.ours:
			fmt.Fprintf(w, "WRONG: %s let %.2f times its law through.\n", l.short, worst)
			status = cli.Broken
		case worst > 1:
			fmt.Fprintf(w, "The %s let %.2f times its limit through.\n", l.short, worst)
		}
	}
	if status == cli.OK {
		fmt.Fprintln(w, "sluice's limiters kept theirs in every second.")
	}
	return status
}
