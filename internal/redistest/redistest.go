// Package redistest starts a Redis for a test: a real redis-server of its own where one is installed, so that tests share
// nothing and need no set-up.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// EnvRequired is the environment variable that, set to "required", makes a missing redis-server a failure instead of
// falling back to the embedded one.
const EnvRequired = "SLUICE_TEST_REDIS"

// A Server is a redis-server on a free port of 127.0.0.1, a child of the test.
type Server struct {
	// Addr stays the same through Stop and Restart.
	Addr string

	port string
	dir  string
	args []string
	cmd  *exec.Cmd
}

// Start starts a Redis that keeps nothing, ends it with the test, and returns its address. Without an installed
// redis-server it is an embedded one, which is slower and not Redis; see EnvRequired.
func Start(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv(EnvRequired) == "required" {
			t.Fatalf("redistest: %s=required and no redis-server: %v", EnvRequired, err)
		}
		m := miniredis.RunT(t)
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		go age(m, stop)
		return m.Addr()
	}
	return StartServer(t).Addr
}

// age lets the embedded Redis' keys expire; its own clock stands still.
func age(m *miniredis.Miniredis, stop <-chan struct{}) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			m.FastForward(100 * time.Millisecond)
		case <-stop:
			return
		}
	}
}

// StartServer starts a real redis-server with args besides ("--appendonly", "yes"), for tests that stop and restart it.
// Where none is installed the test is skipped, or fails if EnvRequired says so.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv(EnvRequired) == "required" {
			t.Fatalf("redistest: %s=required and no redis-server: %v", EnvRequired, err)
		}
		t.Skipf("redistest: this test needs a real redis-server: %v", err)
	}
	s := &Server{dir: t.TempDir(), args: args}
	t.Cleanup(s.Stop)
	var err error
	for range 5 { // between finding a free port and binding it somebody else may take it
		if s.port, err = freePort(); err == nil {
			s.Addr = net.JoinHostPort("127.0.0.1", s.port)
			if err = s.Restart(); err == nil {
				return s
			}
		}
	}
	t.Fatalf("redistest: redis-server did not start: %v", err)
	return nil
}

// Restart starts the server again on the same port, with what its args made it keep.
func (s *Server) Restart() error {
	args := append([]string{
		"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no", "--loglevel", "warning",
	}, s.args...)
	cmd := exec.Command("redis-server", args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	s.cmd = cmd
	if err := s.answer(10 * time.Second); err != nil {
		s.Stop()
		return err
	}
	return nil
}

// Stop kills the server as a crash would. Again is a no-op.
func (s *Server) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // "signal: killed"
	s.cmd = nil
}

// Signal sends the server a signal: SIGSTOP makes it stall with its connections open, SIGCONT goes on.
func (s *Server) Signal(sig os.Signal) error {
	if s.cmd == nil {
		return fmt.Errorf("redistest: the server at %s is stopped", s.Addr)
	}
	return s.cmd.Process.Signal(sig)
}

func (s *Server) answer(within time.Duration) error {
	client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s does not answer: %w", s.Addr, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
