package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/redis/go-redis/v9"
)

// logTo makes one JSON stream of all that is said: ours, the Gate's, asynq's and go-redis', which would write lines of its
// own to stderr.
func logTo(w io.Writer) *slog.Logger {
	log := slog.New(slog.NewJSONHandler(w, nil))
	redis.SetLogger(redisLog{log})
	return log
}

type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, v ...any) {
	l.log.Warn("redis: " + fmt.Sprintf(format, v...))
}

// An asynqLog is an asynq.Logger.
type asynqLog struct{ log *slog.Logger }

func (l asynqLog) Debug(v ...any) { l.log.Debug("asynq: " + fmt.Sprint(v...)) }
func (l asynqLog) Info(v ...any)  { l.log.Info("asynq: " + fmt.Sprint(v...)) }
func (l asynqLog) Warn(v ...any)  { l.log.Warn("asynq: " + fmt.Sprint(v...)) }
func (l asynqLog) Error(v ...any) { l.log.Error("asynq: " + fmt.Sprint(v...)) }
func (l asynqLog) Fatal(v ...any) { l.Error(v...); os.Exit(1) }
