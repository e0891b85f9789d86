package main_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// Processes that left the job's process group, and have another environment, keep the lock of a killed runner
// held while they live.
func TestProcessesThatLeaveTheJobKeepItsLock(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]string{
		"another environment": `setsid env -i PATH="$PATH" sh -c 'trap "" TERM; echo $$ >pid; sleep 60 & wait' & wait`,
		"su":                  `exec su nobody -s /bin/sh -c 'trap "" TERM; echo $$ >pid; sleep 60 & wait'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "su" && os.Geteuid() != 0 {
				t.Skip("needs root")
			}
			s := newStation(t)
			dir, err := os.MkdirTemp("", "multilock-escape-")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // another user writes there
			cmd := clitest.Shell(t, s.command(), "sh", `exec multilock run -n x --ttl 10m --grace 1m -- sh -c 'exec >/dev/null 2>&1; `+strings.ReplaceAll(job, "'", `'\''`)+`'`)
			cmd.Dir = dir
			runner := begin(t, cmd)
			var pid int
			s.eventually("the process that has left is there", func() bool {
				text, err := os.ReadFile(filepath.Join(dir, "pid"))
				pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
				return err == nil && pid > 0
			})
			group, err := syscall.Getpgid(pid)
			require.NoError(t, err)
			t.Cleanup(func() { _ = syscall.Kill(-group, syscall.SIGKILL) })
			s.eventually("it is noted", func() bool {
				marks, _ := filepath.Glob(filepath.Join(s.base, ".locks", "x", "*.job"))
				if len(marks) == 0 {
					return false
				}
				text, _ := os.ReadFile(marks[0])
				return strings.Count(string(text), "pgid") > 1
			})
			runner.Signal(syscall.SIGKILL)
			runner.wait()
			require.NoError(t, syscall.Kill(pid, 0))
			got := s.run("run", "-n", "x", "--", "echo", "beside it")
			require.Equal(t, 121, got.code, got.stdout)
			require.Contains(t, got.stderr, "its job lives")
			require.NoError(t, syscall.Kill(-group, syscall.SIGKILL))
			s.eventually("the lock is free", func() bool { return s.run("run", "-n", "x", "--", "true").code == 0 })
		})
	}
}
