package httplimit

import (
	"bufio"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fadf4e53/sluice"
)

// A refusal is a no to a request that could pass later.
type refusal struct {
	retry time.Duration
	left  int // units that could go now
}

func (*refusal) Error() string { return "not now" }

func isFull(err error) bool { return errors.Is(err, sluice.ErrFull) }

// answer tells the client why its request does not go on.
func (g *guard) answer(w http.ResponseWriter, r *http.Request, lim sluice.Limiter, err error) {
	var not *refusal
	var no *sluice.Refusal
	switch {
	case errors.As(err, &not):
		g.refuse(w, r, lim, *not)
	case errors.Is(err, sluice.ErrTooLarge):
		http.Error(w, "This request costs more than can ever go at once.", http.StatusBadRequest)
	case errors.As(err, &no) && no != nil && !errors.Is(err, sluice.ErrClosed):
		left := min(lim.Stats().Available, no.N-1) // a pacer has room for work that may not start yet
		g.refuse(w, r, lim, refusal{retry: no.RetryAfter, left: left})
	case r.Context().Err() != nil && errors.Is(err, r.Context().Err()):
		gone(w)
	case errors.Is(err, sluice.ErrInvalid):
		g.voice.say(r, "httplimit: a mistake in the program", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	default: // closed, an outage: no limit can be told
		g.voice.say(r, "httplimit: the limiter does not work", err)
		http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
	}
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, lim sluice.Limiter, no refusal) {
	h := w.Header()
	if no.retry != sluice.Never {
		h.Set("Retry-After", strconv.FormatInt(secondsUp(no.retry), 10))
	}
	setFields(h, lim.Stats(), no)
	if g.Refuse == nil {
		http.Error(w, http.StatusText(http.StatusTooManyRequests), http.StatusTooManyRequests)
		return
	}
	body := &refusalWriter{ResponseWriter: w}
	g.Refuse.ServeHTTP(body, r)
	body.begin(http.StatusTooManyRequests)
}

// gone ends a request that nobody waits for any more. If somebody does after all (whoever ended its context goes on),
// he must not take the silence for a 200.
func gone(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) }

// A refusalWriter is what Config.Refuse writes to: without a status of its own that is 429 and not 200. Handlers that are
// not refused get the ResponseWriter itself.
type refusalWriter struct {
	http.ResponseWriter
	begun bool
}

func (w *refusalWriter) begin(status int) {
	if !w.begun {
		w.WriteHeader(status)
	}
}

func (w *refusalWriter) WriteHeader(status int) {
	w.begun = w.begun || status >= 200
	w.ResponseWriter.WriteHeader(status)
}

func (w *refusalWriter) Write(b []byte) (int, error) {
	w.begin(http.StatusTooManyRequests)
	return w.ResponseWriter.Write(b)
}

// FlushError is what http.ResponseController looks for.
func (w *refusalWriter) FlushError() error {
	w.begin(http.StatusTooManyRequests)
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack is, too. Who takes the connection writes the status himself.
func (w *refusalWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buf, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.begun = w.begun || err == nil
	return conn, buf, err
}

// Unwrap is for everything else that it looks for.
func (w *refusalWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// A voice logs at most once a second: in an outage every request has the same to say.
type voice struct {
	base time.Time
	next atomic.Int64 // since base
}

func (v *voice) say(r *http.Request, text string, err error) {
	now, next := time.Since(v.base), v.next.Load()
	if int64(now) >= next && v.next.CompareAndSwap(next, int64(now+time.Second)) {
		slog.ErrorContext(r.Context(), text, "error", err)
	}
}
