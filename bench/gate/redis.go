package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A server is a redis-server of a scenario's own, with its data in a directory of its own.
type server struct {
	addr, port, dir string
	args            []string
	cmd             *exec.Cmd
}

func startServer(args ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "gate-redis-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, args: args}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.addr = l.Addr().String()
	_, s.port, _ = net.SplitHostPort(s.addr)
	_ = l.Close()
	return s, s.start()
}

// start starts it, or starts it again with what its args made it keep, and waits until it answers.
func (s *server) start() error {
	s.cmd = exec.Command("redis-server", append([]string{
		"--port", s.port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--loglevel", "warning",
	}, s.args...)...)
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer func() { _ = client.Close() }()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := client.Ping(context.Background()).Err()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			s.kill()
			return fmt.Errorf("redis-server: %s does not answer: %w", s.addr, err)
		}
	}
}

// kill ends it as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // "signal: killed"
}

func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

// commandsOf adds up what Redis has executed, in scripts too, since the last CONFIG RESETSTAT, but for the questions of
// this program.
func commandsOf(rdb *redis.Client) (int, error) {
	text, err := rdb.Info(context.Background(), "commandstats").Result()
	total := 0
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok || name == "cmdstat_info" || strings.HasPrefix(name, "cmdstat_config") {
			continue
		}
		n := 0
		if _, err := fmt.Sscanf(rest, "%d,", &n); err == nil {
			total += n
		}
	}
	return total, err
}
