package queuerun

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
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

// An asynqLog is an asynq.Logger that says everything once: from a Redis that went away each of Asynq's loops reports
// the same several times a second.
type asynqLog struct {
	log  *slog.Logger
	said sync.Map
}

func (l *asynqLog) Debug(args ...any) { l.say(slog.LevelDebug, args) }
func (l *asynqLog) Info(args ...any)  { l.say(slog.LevelInfo, args) }
func (l *asynqLog) Warn(args ...any)  { l.say(slog.LevelWarn, args) }
func (l *asynqLog) Error(args ...any) { l.say(slog.LevelError, args) }

// Fatal ends the process, as Asynq expects of it.
func (l *asynqLog) Fatal(args ...any) {
	l.say(slog.LevelError, args)
	os.Exit(cli.Broken)
}

func (l *asynqLog) say(level slog.Level, args []any) {
	text := fmt.Sprint(args...)
	if _, again := l.said.LoadOrStore(text, true); !again {
		l.log.Log(context.Background(), level, "asynq: "+text)
	}
}
