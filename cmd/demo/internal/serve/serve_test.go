package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/fadf4e53/sluice/cmd/demo/internal/cli"
)

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// A tape is a writer that can be read meanwhile.
type tape struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (p *tape) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *tape) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// start runs the command until the test ends, and returns its URL and what ends it, which returns the exit status.
func start(t *testing.T, args ...string) (url string, end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs tape
	status := make(chan int, 1)
	go func() { status <- Command().Main(ctx, args, &out, &errs) }()
	end = sync.OnceValue(func() int {
		cancel()
		return <-status
	})
	t.Cleanup(func() {
		end()
		http.DefaultClient.CloseIdleConnections()
		require.Empty(t, errs.String())
	})
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") }, 10*time.Second, 5*time.Millisecond, errs.String())
	url, _, _ = strings.Cut(out.String(), "\n")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, url, "this machine only")
	return url, end
}

// A stream reads frames.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func frames(t *testing.T, url string) *stream {
	t.Helper()
	r, err := http.Get(url + "/frames")
	require.NoError(t, err)
	t.Cleanup(func() { r.Body.Close() })
	require.Equal(t, "text/event-stream", r.Header.Get("Content-Type"))
	return &stream{t, bufio.NewScanner(r.Body)}
}

func (s *stream) next() frame {
	s.t.Helper()
	for s.lines.Scan() {
		text, found := strings.CutPrefix(s.lines.Text(), "data: ")
		if !found {
			continue
		}
		var f frame
		require.NoError(s.t, json.Unmarshal([]byte(text), &f))
		return f
	}
	require.Fail(s.t, "the stream has ended", "%v", s.lines.Err())
	return frame{}
}

// until returns the first frame that is as wanted: of 300, which are half a minute's.
func (s *stream) until(wanted func(frame) bool) frame {
	s.t.Helper()
	return s.within(300, wanted)
}

// within returns the first of n frames that is as wanted.
func (s *stream) within(n int, wanted func(frame) bool) frame {
	s.t.Helper()
	var f frame
	for range n {
		if f = s.next(); wanted(f) {
			return f
		}
	}
	require.Fail(s.t, "no such frame", "the last one: %+v", f)
	return f
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	r, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

func TestJobsRunAndTheLimitCanBeTurned(t *testing.T) {
	t.Parallel()
	url, end := start(t, "-rate", "20", "-burst", "5", "-arrivals", "0")
	s := frames(t, url)
	first := s.next()
	require.Equal(t, knobs{20, 5, 2000, 0}, first.knobs)
	require.Zero(t, first.Arrived)

	status, _ := post(t, url+"/drop", "")
	require.Equal(t, http.StatusNoContent, status)
	f := s.until(func(f frame) bool { return f.Arrived == 500 && f.Deferred > 0 && f.Starts > 20 })
	require.LessOrEqual(t, f.StartsNow, 25+4, "burst + rate, and what a machine that stalls for 200 ms adds")
	require.Greater(t, f.Line, 300)

	// At 20/s what is left takes more than 20 s, which are 200 frames. Turned up, it is through long before.
	status, _ = post(t, url+"/knobs", `{"rate":500}`)
	require.Equal(t, http.StatusNoContent, status)
	turned := s.until(func(f frame) bool { return f.Rate == 500 })
	require.Equal(t, knobs{500, 5, 2000, 0}, turned.knobs, "what was not sent stays")
	f = s.within(120, func(f frame) bool { return f.Line == 0 })
	require.Equal(t, 500, f.Done)
	require.Equal(t, 500, f.Starts, "nothing started twice")
	require.Zero(t, f.Refused)

	status, _ = post(t, url+"/knobs", `{"arrivals":50}`)
	require.Equal(t, http.StatusNoContent, status)
	s.until(func(f frame) bool { return f.Arrived > 520 })
	require.Equal(t, cli.OK, end())
}

func TestBusy(t *testing.T) {
	t.Parallel()
	url, _ := start(t, "-rate", "100", "-arrivals", "50")
	s := frames(t, url)
	s.until(func(f frame) bool { return f.Done > 10 })
	status, _ := post(t, url+"/busy", "")
	require.Equal(t, http.StatusNoContent, status)
	f := s.until(func(f frame) bool { return f.Told > 0 })
	require.Positive(t, f.Busy)
	// One 429 stops the limiter for all: hardly anybody else hears it. Those that were on their way may.
	quiet := s.until(func(f frame) bool { return f.StartsNow == 0 })
	require.Less(t, quiet.Told, 20)
	require.Positive(t, quiet.Line)
	s.until(func(f frame) bool { return f.Busy == 0 && f.StartsNow > 40 && f.Line < 20 })
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	url, _ := start(t, "-rate", "1", "-burst", "1", "-arrivals", "0", "-capacity", "100")
	s := frames(t, url)
	post(t, url+"/drop", "")
	f := s.until(func(f frame) bool { return f.Arrived == 500 })
	require.Equal(t, 400, f.Refused)
	require.LessOrEqual(t, f.Line, 100)
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	url, _ := start(t, "-arrivals", "0")
	for _, s := range []struct{ body, says string }{
		{`{"rate":0}`, "rate 0: must be from 1 to 500"},
		{`{"rate":501}`, "rate 501: must be from 1 to 500"},
		{`{"burst":0}`, "burst 0: must be from 1 to 200"},
		{`{"capacity":-1}`, "capacity -1: must be from 0 to 5000"},
		{`{"arrivals":201}`, "arrivals 201: must be from 0 to 200"},
		{`{"rate":1.5}`, "cannot unmarshal"},
		{`{"speed":1}`, "unknown field"},
		{`nonsense`, "invalid character"},
	} {
		status, text := post(t, url+"/knobs", s.body)
		require.Equal(t, http.StatusBadRequest, status, s.body)
		require.Contains(t, text, s.says)
	}
	require.Equal(t, knobs{50, 10, 2000, 0}, frames(t, url).next().knobs, "nothing was turned")

	for name, change := range map[string]func(*http.Request){
		"another site":                func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another origin":              func(r *http.Request) { r.Header.Set("Origin", "http://example.com") },
		"a name that points to us":    func(r *http.Request) { r.Host = "example.com" },
		"the same, with our own port": func(r *http.Request) { r.Host = "example.com:" + url[strings.LastIndex(url, ":")+1:] },
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/drop", nil)
		require.NoError(t, err)
		change(r)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		answer.Body.Close()
		require.Equal(t, http.StatusForbidden, answer.StatusCode, name)
	}
	require.Zero(t, frames(t, url).next().Arrived)
	answer, err := http.Get(url + "/drop")
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusNotFound, answer.StatusCode, "looking at a deed does not do it")
}

// An interrupt ends it at once, whoever watches.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	url, end := start(t)
	s := frames(t, url)
	s.until(func(f frame) bool { return f.Done > 0 })
	post(t, url+"/drop", "")
	require.Equal(t, cli.OK, end())
	for s.lines.Scan() { // what was on its way
	}
	require.NoError(t, s.lines.Err(), "the stream ends with the run, and is not cut off when patience has")
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	url, _ := start(t)
	var out, errs bytes.Buffer
	addr := strings.TrimPrefix(url, "http://")
	require.Equal(t, cli.Broken, Command().Main(t.Context(), []string{"-addr", addr}, &out, &errs))
	require.Contains(t, errs.String(), "demo: -addr "+addr+": ")
	require.Equal(t, 1, strings.Count(errs.String(), "\n"))
}

// The page needs nothing from anywhere else.
func TestPageIsSelfContained(t *testing.T) {
	for _, name := range []string{"index.html", "page.css", "page.js"} {
		text, err := os.ReadFile("page/" + name)
		require.NoError(t, err)
		for _, address := range regexp.MustCompile(`https?://[^"' ]+`).FindAllString(string(text), -1) {
			require.Equal(t, "http://www.w3.org/2000/svg", address, "a name, not an address: all else must be here")
		}
		require.NotContains(t, string(text), "@import")
	}
}

// The sliders go exactly as far as the server lets them.
func TestSlidersKnowTheBounds(t *testing.T) {
	text, err := os.ReadFile("page/index.html")
	require.NoError(t, err)
	for _, want := range []string{`id="rate" type="range" min="1" max="500"`, `id="burst" type="range" min="1" max="200"`,
		`id="capacity" type="range" min="0" max="5000"`, `id="arrivals" type="range" min="0" max="200"`} {
		require.Contains(t, string(text), want)
	}
	require.Equal(t, []int{500, 200, 5000, 200}, []int{maxRate, maxBurst, maxCapacity, maxArrivals})
}

func TestMeter(t *testing.T) {
	var m meter
	at := time.Unix(0, 0)
	m.note(at, 3)
	m.note(at.Add(400*time.Millisecond), 2)
	m.note(at, 0)
	require.Equal(t, 5, m.lastSecond(at.Add(999*time.Millisecond)))
	require.Equal(t, 2, m.lastSecond(at.Add(time.Second)))
	require.Equal(t, 0, m.lastSecond(at.Add(2*time.Second)))
	require.Equal(t, 5, m.total())
}

func TestBadFlags(t *testing.T) {
	var out, errs bytes.Buffer
	require.Equal(t, cli.Usage, Command().Main(t.Context(), []string{"-rate", "501"}, &out, &errs))
	require.Contains(t, errs.String(), "must be a whole number from 1 to 500")
	var s settings
	flags(flag.NewFlagSet("", flag.ContinueOnError), &s)
	require.Equal(t, "127.0.0.1:0", s.addr)
}
