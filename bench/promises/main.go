// Promises prints which of sluice's promises each limiter keeps, by running each case of sluicetest on each in a process
// of its own:
//
//	go -C bench run ./promises
//
// A group that a limiter has no function for is "not offered". That a case fails means only that the limiter does not
// do what sluice promises: most of it they never promised.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

var peers = []struct {
	name, title string
	notOffered  []string // groups
}{
	{"sluice", "sluice/waiter", nil},
	{"xtime", "x/time/rate", []string{"pause", "stats", whole1, whole2, whole3}},
	{"uber", "uber-go/ratelimit", []string{"pause", "stats", "try", "told", "reserve", "cancel", "ctx", "deadline", "leave", "tie", "toolarge", whole1, whole2, whole3}},
	{"failsafe", "failsafe-go (smooth)", []string{"pause", "stats", "told", "reserve", "cancel", "toolarge", whole1, whole2, whole3}},
	{"juju", "juju/ratelimit", []string{"pause", "stats", "told", "reserve", "cancel", "ctx", "deadline", "leave", "tie", "toolarge", whole1, whole2, whole3}},
}

// Cases that use the whole contract say nothing about who has only a part of it.
const whole1, whole2, whole3 = "law", "stress", "leftover"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "promises")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "peers.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "./promises").CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	cases, err := list(binary)
	if err != nil {
		return err
	}
	var groups []string
	kept, all := map[string]int{}, map[string]int{}
	for _, c := range cases {
		group, _, _ := strings.Cut(c, "/")
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		for _, p := range peers {
			if slices.Contains(p.notOffered, group) {
				continue
			}
			switch verdict(binary, p.name, c) {
			case "pass":
				kept[p.name+group]++
				all[p.name+group]++
			case "fail":
				all[p.name+group]++
			}
		}
	}
	fmt.Print("| cases of sluicetest |")
	for _, p := range peers {
		fmt.Printf(" %s |", p.title)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat(":---:|", len(peers)))
	for _, g := range groups {
		fmt.Printf("| %s |", g)
		for _, p := range peers {
			if slices.Contains(p.notOffered, g) {
				fmt.Print(" not offered |")
			} else {
				fmt.Printf(" %d of %d |", kept[p.name+g], all[p.name+g])
			}
		}
		fmt.Println()
	}
	return nil
}

// list returns the names of all cases, from a run on ourselves.
func list(binary string) ([]string, error) {
	out, err := command(context.Background(), binary, "-test.v", "-test.run", "^TestPeer$/^sluice$").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	var names []string
	name := regexp.MustCompile(`^=== RUN +TestPeer/sluice/(.*)$`)
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		if m := name.FindStringSubmatch(s.Text()); m != nil {
			names = append(names, m[1])
		}
	}
	return names, nil
}

// verdict runs one case on one peer.
func verdict(binary, peer, name string) string {
	parts := strings.Split(name, "/")
	pattern := "^TestPeer$/^" + peer + "$"
	for _, p := range parts {
		pattern += "/^" + regexp.QuoteMeta(p) + "$"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := command(ctx, binary, "-test.v", "-test.timeout", "15s", "-test.run", pattern).CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("--- SKIP: TestPeer/"+peer+"/")):
		return "skip"
	case err != nil || !bytes.Contains(out, []byte("--- PASS: TestPeer/"+peer+"/")):
		return "fail"
	}
	return "pass"
}

func command(ctx context.Context, binary string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "PROMISES=1")
	return cmd
}
