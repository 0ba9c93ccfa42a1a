package store

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

// A Log is an asynq.Logger that says everything once: from a Redis that went away each of Asynq's loops reports
// the same several times a second.
type Log struct {
	To   *slog.Logger
	said sync.Map
}

func (l *Log) Debug(args ...any) { l.say(slog.LevelDebug, args) }
func (l *Log) Info(args ...any)  { l.say(slog.LevelInfo, args) }
func (l *Log) Warn(args ...any)  { l.say(slog.LevelWarn, args) }
func (l *Log) Error(args ...any) { l.say(slog.LevelError, args) }

// Fatal ends the process, as Asynq expects of it.
func (l *Log) Fatal(args ...any) {
	l.say(slog.LevelError, args)
	os.Exit(cli.Broken)
}

func (l *Log) say(level slog.Level, args []any) {
	text := fmt.Sprint(args...)
	if _, again := l.said.LoadOrStore(text, true); !again {
		l.To.Log(context.Background(), level, "asynq: "+text)
	}
}
