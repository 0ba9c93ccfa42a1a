package waitrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// A book holds what became of each goroutine.
type book struct {
	opened time.Time
	giveUp []context.CancelFunc

	mu      sync.Mutex // guards everything below
	state   []state
	starts  []time.Duration
	leftAt  time.Duration // when those who were sent away were; 0: nobody was
	dodgers int           // who were sent away and went all the same: their turn came first
}

type state int

const (
	inLine state = iota
	started
	left
	failed
	leaving // told to give up, and not gone yet
)

func newBook(n int) *book {
	return &book{opened: time.Now(), giveUp: make([]context.CancelFunc, n), state: make([]state, n)}
}

// close writes down how Wait ended for number i.
func (b *book) close(i int, err error) {
	at := time.Since(b.opened)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		if b.state[i] == leaving {
			b.dodgers++
		}
		b.state[i] = started
		b.starts = append(b.starts, at)
	case errors.Is(err, context.Canceled):
		b.state[i] = left
	default:
		b.state[i] = failed
	}
}

// exodus sends the next n in line away, and returns how many there were.
func (b *book) exodus(n int) int {
	b.mu.Lock()
	b.leftAt = time.Since(b.opened)
	var going []context.CancelFunc
	for i, st := range b.state {
		if st == inLine && len(going) < n {
			b.state[i] = leaving
			going = append(going, b.giveUp[i])
		}
	}
	b.mu.Unlock()
	for _, cancel := range going {
		cancel()
	}
	return len(going)
}

func (b *book) started() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.starts)
}

// writeRow writes the starts since seen of them, and returns how many there are now.
func (b *book) writeRow(w io.Writer, seen int) int {
	b.mu.Lock()
	n, waiting := len(b.starts), 0
	for _, st := range b.state {
		if st == inLine {
			waiting++
		}
	}
	b.mu.Unlock()
	const most = 40
	bar := strings.Repeat("█", min(n-seen, most))
	if n-seen > most {
		bar += "…"
	}
	line := fmt.Sprintf("%8s  %s", since(b), bar)
	if n > seen {
		line += fmt.Sprintf(" %d start", n-seen)
	}
	fmt.Fprintf(w, "%-52s  %d in line\n", line, waiting)
	return n
}

// A tally is the book at the end.
type tally struct {
	starts                []time.Duration // in order
	left, failed, missing int
	leftAt                time.Duration
	dodgers               int
}

func (b *book) tally() tally {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := tally{starts: slices.Sorted(slices.Values(b.starts)), leftAt: b.leftAt, dodgers: b.dodgers}
	for _, st := range b.state {
		switch st {
		case left:
			t.left++
		case failed:
			t.failed++
		case inLine, leaving:
			t.missing++
		}
	}
	return t
}
