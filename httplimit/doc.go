// Package httplimit is a net/http middleware that holds requests to a limit: those over it are refused with 429 and told
// when to come again, or held for their turn.
//
//	limit, err := httplimit.New(httplimit.Config{Limiter: limiter})
//	...
//	http.Handle("GET /search", limit(search))
//
// It takes any sluice.Limiter, and works wherever a func(http.Handler) http.Handler does: http.ServeMux, chi and others.
// A request that goes on gets the ResponseWriter as it came, so that Flush, Hijack and the rest are the server's own,
// and no header from here.
//
// # What a refused request gets
//
// 429 Too Many Requests, and
//
//	Retry-After: 2
//	RateLimit-Policy: "default";q=100;w=60
//	RateLimit: "default";r=0;t=2
//
// Retry-After is in whole seconds, rounded up, and at least 1: a retry at that moment passes if nobody else came. The
// other two are those of draft-ietf-httpapi-ratelimit-headers. q units in w seconds is the limiter's rate, over a window
// of whole seconds in which its burst can gather; where no window of up to an hour makes that whole, q is rounded down.
// q says what flows on average: at most the burst of it goes at once. r is what could go now, t is Retry-After. Both q
// and r count units: requests, unless Config.Cost says otherwise. A limit that cannot say its rate sends neither field,
// and where no waiting helps there is no Retry-After. Config.Refuse writes the body.
//
// # What other answers mean
//
// 400 Bad Request: the request costs more than can ever go at once (sluice.ErrTooLarge). It is not 429: a client that
// tries again would do so for ever. Nor is it 413, for what costs need not be the content.
//
// 503 Service Unavailable: the limiter does not work, since Redis is out (cluster.ErrOutage) or it was closed. That the
// limit cannot be asked does not mean that the client has passed it. A limiter's own policy (cluster.FailOpen,
// cluster.FailLocal) lets requests go instead.
//
// 500 Internal Server Error: a mistake in the program, such as a negative Cost. It and 503 are told to slog.Default, once a
// second at most. Their text, and that of 400, is fixed: no error is shown to a client.
//
// In each of these cases nothing was taken, and the handler is not called. A panic in Route or Cost is net/http's to
// deal with, as one in a handler is.
//
// # Holding requests
//
// With MaxWait a request that is over the limit waits in the limiter's line, first come, first served, unless its turn
// would come later than MaxWait or than its own context's deadline: then it is refused at once. If its
// context ends while it waits, its place goes back, all behind it move up, and its handler is not called; one whose
// context ends in the very instant of its turn has spent what it costs. net/http ends the context when the client
// goes away, but notices that only once the request's body has been read: so a POST may be held for a client that is gone.
// Bound the line as well (waiter.Config.MaxWaiters): each request that is held keeps a connection and a goroutine. A
// limiter whose line is full is asked a second time, for when a retry would pass, and counts two refusals.
//
// A leaky.Pacer starts requests at even distances, so it needs a MaxWait of Capacity/Rate; with less, what has room in
// the bucket is refused if it could not start in time, and with 0 everything that could not start now. A refusal for want
// of room then tells when there is room.
//
// # Telling clients apart
//
// Route picks the limit of each request. With a keyed.Map of limiters:
//
//	client := httplimit.ByAddress(netip.MustParsePrefix("10.0.0.0/8")) // our own proxies
//	Route: func(r *http.Request) sluice.Limiter { return limits.For(client(r)) }
//
// ByAddress, ByHeader and ByBearer make keys of bounded length. Give each kind of key a Map of its own: a header can
// have any value, an address too.
//
// # Concurrency, and what is not promised
//
// A middleware keeps no state of any request, and may wrap any number of handlers; all of them share the limit. Any number
// of goroutines may use it. It limits the starts of requests, not how many run at once. What a retry finds when other
// clients come as well is not promised, and a Retry-After that many were told may bring them back together.
package httplimit
