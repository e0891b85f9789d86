package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/procfs"
	"github.com/multilock/go/multilock/source"
)

// withPassword adds a password for a source to a command's environment, in each possible way.
func withPassword(cmd *exec.Cmd) (*exec.Cmd, string) {
	password := source.NewToken()
	cmd.Env = append(cmd.Env, "MULTILOCK_PASSWORD="+password, "MULTILOCK_SOURCE=mongodb://ada:"+password+"@host/a.b")
	return cmd, password
}

// requireUnshown requires that no process of this host exposes a text in its environment or command line.
func requireUnshown(t *testing.T, text string) {
	t.Helper()
	pids, err := procfs.Proc.PIDs()
	require.NoError(t, err)
	for _, pid := range pids {
		of := filepath.Join("/proc", strconv.Itoa(pid))
		environ, _ := os.ReadFile(filepath.Join(of, "environ")) // it may have ended
		command, _ := os.ReadFile(filepath.Join(of, "cmdline"))
		require.False(t, bytes.Contains(environ, []byte(text)), "process %d, %q, shows it in its environment", pid, command)
		require.False(t, bytes.Contains(command, []byte(text)), "process %d, %q, shows it in its command line", pid, command)
	}
}

// Other users of a host cannot see a source's password.
func TestThePasswordOfASourceIsInNoProcessesEnvironment(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	t.Run("run", func(t *testing.T) {
		t.Parallel()
		cmd, password := withPassword(s.command("run", "-n", "run", "-d", s.base, "--", "sh", "-c", "echo ready; exec cat"))
		r := begin(t, cmd)
		r.Expect("ready")
		r.helper(s, "__guard")
		requireUnshown(t, password)
		require.Zero(t, r.end().code)
	})
	t.Run("batch", func(t *testing.T) {
		t.Parallel()
		started := filepath.Join(t.TempDir(), "started")
		cmd, password := withPassword(s.command("batch", "-d", s.base, s.list(fmt.Sprintf("batch\ttouch %s; exec sleep 1000", started))))
		r := begin(t, cmd)
		s.eventually("the job runs", func() bool { _, err := os.Stat(started); return err == nil })
		r.helper(s, "__guard")
		requireUnshown(t, password)
	})
	t.Run("acquire", func(t *testing.T) {
		t.Parallel()
		cmd, password := withPassword(s.command("acquire", "--json", "--ttl", "2s", "-n", "acquire", "-d", s.base, "--pid", strconv.Itoa(s.owner().PID())))
		var a acquired
		require.NoError(t, json.Unmarshal([]byte(s.finish(cmd).stdout), &a))
		require.NoError(t, syscall.Kill(a.Keeper, 0))
		requireUnshown(t, password)
		s.must("release", "-n", "acquire", "--token", a.Token)
		s.eventually("the keeper ends", func() bool { return syscall.Kill(a.Keeper, 0) != nil })
	})
}
