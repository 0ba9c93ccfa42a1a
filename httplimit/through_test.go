package httplimit_test

import (
	"bufio"
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"github.com/fadf4e53/sluice"
	"github.com/fadf4e53/sluice/httplimit"
)

func TestTheHandlerGetsTheResponseWriterItself(t *testing.T) {
	for _, hold := range []time.Duration{0, time.Second} {
		limit, err := httplimit.New(httplimit.Config{Limiter: newWaiter(t, sluice.PerSecond(1), 1), MaxWait: hold})
		require.NoError(t, err)
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		limit(http.HandlerFunc(func(gotW http.ResponseWriter, gotR *http.Request) {
			require.Same(t, w, gotW)
			require.Same(t, r, gotR, "nor does the request get MaxWait for a deadline")
		})).ServeHTTP(w, r)
	}
}

func TestStreamsAndHijackedConnectionsPass(t *testing.T) {
	limit, err := httplimit.New(httplimit.Config{Limiter: newWaiter(t, sluice.PerSecond(1), 2)})
	require.NoError(t, err)
	mux := http.NewServeMux()
	more := make(chan struct{})
	mux.Handle("GET /stream", limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one\n")
		w.(http.Flusher).Flush()
		<-more
		_, _ = io.WriteString(w, "two\n")
	})))
	mux.Handle("GET /hijack", limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nraw\n")
			_ = conn.Close()
		}
	})))
	server := httptest.NewServer(mux)
	defer server.Close()
	got, err := server.Client().Get(server.URL + "/stream")
	require.NoError(t, err)
	defer got.Body.Close()
	lines := bufio.NewScanner(got.Body)
	require.True(t, lines.Scan(), "the first line comes while the handler still runs")
	require.Equal(t, "one", lines.Text())
	close(more)
	require.True(t, lines.Scan())
	require.Equal(t, "two", lines.Text())

	raw, err := server.Client().Get(server.URL + "/hijack")
	require.NoError(t, err)
	defer raw.Body.Close()
	body, err := io.ReadAll(raw.Body)
	require.NoError(t, err)
	require.Equal(t, "raw\n", string(body))
}

func TestRoutersGiveEachPatternItsLimit(t *testing.T) {
	limit := func() func(http.Handler) http.Handler {
		l, err := httplimit.New(httplimit.Config{Limiter: newWaiter(t, sluice.Every(time.Hour), 1)})
		require.NoError(t, err)
		return l
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

	mux := http.NewServeMux()
	mux.Handle("GET /items/{id}", limit()(ok))
	mux.Handle("POST /items/{id}", limit()(ok))
	mux.Handle("GET /healthz", ok)

	router := chi.NewRouter()
	router.Get("/healthz", ok)
	router.With(limit()).Get("/items/{id}", ok)
	router.Group(func(r chi.Router) {
		r.Use(limit())
		r.Post("/items/{id}", ok)
	})

	for name, h := range map[string]http.Handler{"ServeMux": mux, "chi": router} {
		for i, s := range []struct {
			method, path string
			status       int
		}{
			{"GET", "/items/1", 200},
			{"GET", "/items/2", 429},
			{"POST", "/items/1", 200},
			{"POST", "/items/1", 429},
			{"GET", "/healthz", 200},
			{"GET", "/healthz", 200},
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(s.method, s.path, nil))
			require.Equal(t, s.status, w.Code, "%s %d", name, i)
		}
	}
}

func TestItIsMadeOfTheStandardLibraryAndKnowsNoKindOfLimiter(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"github.com/fadf4e53/sluice", "github.com/fadf4e53/sluice/internal/exact", "github.com/fadf4e53/sluice/internal/isnil",
		"github.com/fadf4e53/sluice/httplimit",
	}, strings.Fields(string(out)))
}

// Who refuses by taking the connection away writes no status by us.
func TestARefusalMayHijack(t *testing.T) {
	refuse := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 420 Calm Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			_ = conn.Close()
		}
	})
	limiter := newWaiter(t, sluice.Every(time.Hour), 1)
	require.NoError(t, limiter.Wait(t.Context(), 1))
	limit, err := httplimit.New(httplimit.Config{Limiter: limiter, Refuse: refuse})
	require.NoError(t, err)
	var said bytes.Buffer
	server := httptest.NewUnstartedServer(limit(http.NotFoundHandler()))
	server.Config.ErrorLog = log.New(&said, "", 0)
	server.Start()
	got, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	_ = got.Body.Close()
	server.Close()
	require.Equal(t, 420, got.StatusCode)
	require.Empty(t, said.String())
}
