package queue

import (
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// A Deferral tells OnDefer about one task that was handed back.
type Deferral struct {
	TaskID string
	Type   string
	Queue  string
	// N is what the task costs, in its limiter's units.
	N int
	// In is how long until the task is expected back.
	In time.Duration
	// Count is how often this process has deferred this task, from 1, since the task last ended any other way.
	Count int
}

// Defer returns the error with which a handler hands its task back, to come again no sooner than d: not a failure,
// no retry used, nothing logged. A negative d counts as 0. It works under any wrapping that errors.As sees through.
//
// Asynq keeps whole seconds, so the task starts up to a second and a tick of the forwarder after d, never before.
// On a task's last attempt Asynq would archive whatever its handler returned; there the Gate keeps the task in its
// worker slot for d and calls the handler again, and where the task's own deadline leaves no room for that, the task
// fails with an error that says so.
func Defer(d time.Duration) error { return &deferral{d: max(d, 0)} }

// Backoff is Defer for a task that was told to slow down (a 429 with Retry-After): besides, it stops the task's limiter
// for d, for everybody who shares it. Under other limiters work goes on.
func Backoff(d time.Duration) error { return &deferral{d: max(d, 0), pause: true} }

// IsDeferred says whether err, or any error that it wraps, is a deferral: the Gate's own or a handler's.
func IsDeferred(err error) bool {
	_, ok := deferralIn(err)
	return ok
}

// A deferral is the error that means "later". The Gate's own has the instant of the return; that of a handler has
// only the distance, and is never changed: a handler may keep one in a variable and return it from every task.
type deferral struct {
	d     time.Duration
	pause bool
	at    time.Time // the earliest return; zero: d from when Asynq asks
	now   bool      // due at once, not rounded up: Drain's
	cause error     // what the handler returned, or why the limiter refused
}

func (e *deferral) Error() string {
	if e.now {
		return "queue: handed back by Drain"
	}
	s := fmt.Sprintf("queue: deferred for %v", e.d)
	if e.cause != nil && !IsDeferred(e.cause) {
		s += ": " + e.cause.Error()
	}
	return s
}

func (e *deferral) Unwrap() error { return e.cause }

// delay is what RetryDelayFunc answers. Asynq adds it to a clock that it reads a little later and cuts the fraction of
// the second off, so a whole second told here is never cut down to the one before.
func (e *deferral) delay(now time.Time) time.Duration {
	switch {
	case e.now:
		return 0
	case e.at.IsZero():
		return secondUp(now.Add(e.d)).Sub(now)
	}
	return max(0, secondUp(e.at).Sub(now))
}

func deferralIn(err error) (*deferral, bool) {
	var d *deferral
	ok := errors.As(err, &d) && d != nil
	return d, ok
}

// handsBack says whether Asynq will put a task with this error back: asynq looks for SkipRetry and RevokeTask first,
// and who wraps those around a deferral has said that it is the end.
func handsBack(err error) (*deferral, bool) {
	if errors.Is(err, asynq.SkipRetry) || errors.Is(err, asynq.RevokeTask) {
		return nil, false
	}
	return deferralIn(err)
}
