package queuerun

import (
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// A screen is a progress bar that others can write through: their lines push it down. Where nobody looks, in a pipe or a
// log, there is no bar. Any number of goroutines may share one.
type screen struct {
	mu  sync.Mutex // guards the writer and the bar
	out io.Writer
	bar *progressbar.ProgressBar // nil: none
}

func newScreen(out io.Writer, all int) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.bar = progressbar.NewOptions(all,
			progressbar.OptionSetWriter(out),
			progressbar.OptionSetWidth(40),
			progressbar.OptionSetDescription("jobs done"),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(50*time.Millisecond),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionUseANSICodes(true))
	}
	return s
}

func (s *screen) show(done int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.Set(done) // nothing to be done about a terminal that went away
	}
}

// close wipes the bar away: the report stands in its place.
func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.Clear()
		s.bar = nil
	}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar == nil {
		return s.out.Write(p)
	}
	s.bar.Clear()
	n, err := s.out.Write(p)
	s.bar.RenderBlank()
	return n, err
}

// logger tells what somebody should know of, and nothing of a normal life.
func (s *screen) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
