package queuerun

import (
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	barWidth  = 28 // characters of a column's longest bar; two columns fit into 80
	chartRows = 30 // at most; longer runs get longer steps
)

// writeChart draws the starts of each kind over time. Each kind has a scale of its own: on a common one a burst of work
// without a limit flattens the very thing that is to be seen, a limit that is used up evenly. The numbers compare them.
func writeChart(w io.Writer, accounts []account) {
	var end time.Duration
	for _, a := range accounts {
		end = max(end, a.took())
	}
	step := (end / chartRows).Truncate(time.Second) + time.Second
	rows := int(end/step) + 1

	header := fmt.Sprintf("%7s", "from")
	columns := make([][]int, len(accounts))
	for i, a := range accounts {
		columns[i] = perStep(a.starts, step, rows)
		header += fmt.Sprintf("  %-*s", barWidth+6, fmt.Sprintf("%s: starts in each %v", a.kind, step))
	}
	fmt.Fprintln(w, strings.TrimRight(header, " "))
	for row := range rows {
		line := fmt.Sprintf("%7v", time.Duration(row)*step)
		for _, column := range columns {
			line += fmt.Sprintf("  %-*s", barWidth+6, bar(column[row], column))
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func perStep(starts []time.Duration, step time.Duration, rows int) []int {
	counts := make([]int, rows)
	for _, at := range starts {
		counts[at/step]++
	}
	return counts
}

// bar is in proportion to the longest of its column, but what is not nothing can be seen.
func bar(n int, column []int) string {
	if n == 0 {
		return ""
	}
	longest := 1
	for _, c := range column {
		longest = max(longest, c)
	}
	blocks := (n*barWidth + longest/2) / longest
	if blocks == 0 {
		return fmt.Sprintf("▏ %d", n)
	}
	return fmt.Sprintf("%s %d", strings.Repeat("█", blocks), n)
}
