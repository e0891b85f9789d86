package main_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// orphans are the ways in which a child can be out of its job's sight.
var orphans = map[string]string{
	"background": `sleep 1000 &`,
	"setsid":     `setsid sleep 1000 &`,
	"timeout":    `timeout 1000 sleep 1000 &`,
}

// carriers are the processes that have an entry in their environment.
func carriers(entry string) []int {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []int
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+entry+"\x00")) {
			pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
			found = append(found, pid)
		}
	}
	return found
}

func killCarriers(token string) {
	for _, pid := range carriers("MULTILOCK_TOKEN=" + token) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// orphan leaves a lock whose runner was killed by the first thing that its job did
// after it had started a child, which lives on. On a busy machine the guard may have
// been faster, and the child is gone with it: then it tries again.
func (s *station) orphan(child string) (token string) {
	s.t.Helper()
	s.eventually("a child outlives its runner", func() bool {
		cmd := s.command("run", "-q", "-n", "x", "--ttl", "1h", "--wait", "forever", "--", "sh", "-c", child+` kill -KILL "$PPID"`)
		_ = cmd.Run()
		token = s.lock("x").Token
		s.t.Cleanup(func() { killCarriers(token) })
		return len(carriers("MULTILOCK_TOKEN="+token)) > 0
	})
	return token
}

// From its first instruction on, a job keeps the lock on its host for as long as one of
// its processes lives, whatever group that is in; and no longer.
func TestChildOfAKilledRunnerKeepsTheLock(t *testing.T) {
	t.Parallel()
	for name, child := range orphans {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			token := s.orphan(child)
			got := s.run("run", "-n", "x", "--", "true")
			require.Equal(t, 121, got.code, got.stderr)
			require.Contains(t, got.stderr, "its job lives: process ")
			require.Equal(t, 121, s.run("break", "x").code)
			killCarriers(token)
			s.must("run", "-n", "x", "--wait", "1m", "--", "true")
			require.Contains(t, s.history("x")[1].Why, "no process")
		})
	}
}
