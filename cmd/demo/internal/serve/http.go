package serve

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"
)

//go:embed page
var files embed.FS

const (
	frameEvery = 100 * time.Millisecond
	herd       = 500
	busyFor    = 3 * time.Second
)

// handler serves the page, its stream of frames and its three deeds.
func handler(w *works) http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the name stands above
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /frames", w.stream)
	mux.HandleFunc("POST /knobs", w.postKnobs)
	mux.HandleFunc("POST /drop", func(rw http.ResponseWriter, _ *http.Request) {
		w.drop(herd)
		rw.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("POST /busy", func(rw http.ResponseWriter, _ *http.Request) {
		w.answer429(busyFor)
		rw.WriteHeader(http.StatusNoContent)
	})
	return guard(http.NewCrossOriginProtection().Handler(mux))
}

// guard keeps other sites out: the page takes everything from here, and a name that somebody else's DNS points at this
// machine is not one of ours.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(host) == nil {
			http.Error(rw, "reach this page by its address or as localhost", http.StatusForbidden)
			return
		}
		rw.Header().Set("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'")
		rw.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(rw, r)
	})
}

// stream sends a frame every tenth of a second, as server-sent events, until the page or the run is gone.
func (w *works) stream(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "text/event-stream")
	rw.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(rw)
	tick := time.NewTicker(frameEvery)
	defer tick.Stop()
	for {
		text, err := json.Marshal(w.frame())
		if err == nil {
			_, err = fmt.Fprintf(rw, "data: %s\n\n", text)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return // the page is gone
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

func (w *works) postKnobs(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	k := w.knobs // those that are not sent stay
	w.mu.Unlock()
	in := json.NewDecoder(http.MaxBytesReader(rw, r.Body, 1<<10))
	in.DisallowUnknownFields()
	err := in.Decode(&k)
	if err == nil {
		err = w.turn(k)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}
