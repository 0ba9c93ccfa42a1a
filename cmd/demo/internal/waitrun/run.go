package waitrun

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/cmd/demo/internal/law"
)

// run shows it, and returns the exit status.
func run(ctx context.Context, s settings, l sluice.Limiter, stdout io.Writer) int {
	fmt.Fprintf(stdout, "%d goroutines wait on one limiter (%v, burst %d).", s.n, s.rate, s.burst)
	if s.leave > 0 {
		fmt.Fprintf(stdout, " After %v the next %d in line give up.", s.after, min(s.leave, s.n))
	}
	fmt.Fprint(stdout, "\n\n")

	b := newBook(s.n)
	p := law.NewPulse(b.opened)
	var all sync.WaitGroup
	for i := range s.n {
		own, cancel := context.WithCancel(ctx)
		b.giveUp[i] = cancel
		all.Go(func() {
			defer cancel()
			b.close(i, l.Wait(own, 1))
		})
		// First come, first served: the next comes when this one stands in line. After an interrupt nobody does.
		for inside(l) <= i && ctx.Err() == nil {
			runtime.Gosched()
		}
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	watch(ctx, s, b, done, stdout)
	<-done
	r := report{settings: s, tally: b.tally(), units: l.Stats().Units, stalls: p.Close(), interrupted: ctx.Err() != nil}
	return r.write(stdout)
}

// inside is how many callers the limiter knows of.
func inside(l sluice.Limiter) int {
	st := l.Stats()
	return st.Waiting + int(st.Granted+st.Refused+st.Canceled)
}

// row is how much time one line of the output is.
const row = 250 * time.Millisecond

// watch writes a line for each row of time, until all are through, and sends away who is to leave.
func watch(ctx context.Context, s settings, b *book, done <-chan struct{}, stdout io.Writer) {
	rows := time.NewTicker(row)
	defer rows.Stop()
	var exodus <-chan time.Time
	if s.leave > 0 {
		timer := time.NewTimer(max(0, s.after-time.Since(b.opened)))
		defer timer.Stop()
		exodus = timer.C
	}
	seen := 0
	for {
		select {
		case <-exodus:
			exodus = nil
			seen = b.writeRow(stdout, seen)
			fmt.Fprintf(stdout, "%8s  %d give up\n", since(b), b.exodus(s.leave))
		case <-rows.C:
			seen = b.writeRow(stdout, seen)
		case <-ctx.Done():
			return // all leave by themselves
		case <-done:
			if b.started() > seen {
				b.writeRow(stdout, seen)
			}
			return
		}
	}
}

func since(b *book) string { return time.Since(b.opened).Truncate(10 * time.Millisecond).String() }
