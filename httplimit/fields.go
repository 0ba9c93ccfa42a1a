package httplimit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/internal/exact"
)

// largest is the largest Integer of Structured Fields (RFC 9651).
const largest = 999_999_999_999_999

// setFields says what the limit is and what is left of it, by draft-ietf-httpapi-ratelimit-headers: t is the same moment
// as Retry-After, as that asks for.
func setFields(h http.Header, s sluice.Stats, no refusal) {
	q, w, ok := policy(s.Rate, s.Burst)
	if !ok {
		return
	}
	b := append([]byte(nil), `"default";q=`...)
	b = strconv.AppendInt(b, q, 10)
	b = append(b, `;w=`...)
	b = strconv.AppendInt(b, w, 10)
	h.Set("RateLimit-Policy", string(b))

	b = append(b[:0], `"default";r=`...)
	b = strconv.AppendInt(b, min(int64(max(no.left, 0)), largest), 10)
	if no.retry != sluice.Never {
		b = append(b, `;t=`...)
		b = strconv.AppendInt(b, secondsUp(no.retry), 10)
	}
	h.Set("RateLimit", string(b))
}

// policy says a rate and a burst as q units in a window of w whole seconds. Neither is more than the truth: q/w is the
// rate (rounded down where no window of up to an hour makes it whole), and the window is no shorter than it takes the
// burst to gather, so that the burst is at most q.
func policy(rate sluice.Rate, burst int) (q, w int64, ok bool) {
	if !rate.Valid() || rate.IsUnlimited() || burst < 1 {
		return 0, 0, false
	}
	_, period := rate.Fraction()
	step := int64(period) / int64(exact.GCD(uint64(period), uint64(time.Second))) // whole seconds in which whole units flow
	if step > int64(time.Hour/time.Second) {
		step = 1
	}
	w = (secondsUp(rate.TimeFor(int64(burst))) + step - 1) / step * step
	w = min(w, int64(sluice.Never/time.Second))
	return min(rate.UnitsIn(time.Duration(w)*time.Second), largest), w, true
}

// secondsUp is d in whole seconds, and never 0: a client that came back at once would be refused again.
func secondsUp(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return max(s, 1)
}
