package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// If the token could not be written, no process has received it: acquire fails, and the lock is free.
func TestTokenThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	for name, redirection := range map[string]string{
		"full disk":     `>/dev/full`,
		"closed output": `>&-`,
		"gone reader":   `| true`,
	} {
		for _, how := range []string{"--pid $$", "--detach --ttl 1h"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				s := newStation(t)
				script := begin(t, clitest.Shell(t, s.command(), "bash", fmt.Sprintf(`set -o pipefail; multilock acquire -n x %s %s; echo "code $?"; read x`, how, redirection)))
				script.Expect("code ")
				script.Expect("\n")
				if name != "gone reader" { // the reader may have left before or after the token was written
					require.NotContains(t, script.Out.String(), "code 0")
				}
				if !strings.Contains(script.Out.String(), "code 0") {
					require.Equal(t, "free", s.lock("x").State)
				}
				script.end()
			})
		}
	}
}

// Output to the null device counts as delivered: the script's end releases the lock.
func TestTokenIntoTheNullDevice(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	script := begin(t, clitest.Shell(t, s.command(), "sh", `multilock acquire -n x >/dev/null; echo "code $?."; read x`))
	script.Expect(".")
	require.Equal(t, "code 0.\n", script.Out.String())
	require.Equal(t, "held", s.lock("x").State)
	script.end()
	s.eventuallyFree("x")
}

// However acquire is terminated, either its output has the token, or the lock is free.
func TestEndedAcquireLeavesNoGrant(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			owner := s.owner()
			for n := range 30 {
				lock := "x" + strconv.Itoa(n)
				a := s.start("acquire", "-n", lock, "--pid", strconv.Itoa(owner.PID()), "--ttl", "1h")
				time.Sleep(time.Duration(2*n) * time.Millisecond)
				a.Signal(sig)
				if a.wait().stdout == "" {
					s.eventuallyFree(lock)
				}
			}
			owner.end()
			s.eventually("no keeper writes there any more", func() bool { return os.RemoveAll(s.base) == nil })
		})
	}
}

// A wrapper that only runs acquire ends with it, and would release the lock.
func TestAcquireBelowAWrapper(t *testing.T) {
	t.Parallel()
	for _, wrapper := range []string{"timeout 30", "nice", "timeout 30 nice timeout 20", "env"} {
		t.Run(wrapper, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			script := begin(t, clitest.Shell(t, s.command(), "bash", `t=$(`+wrapper+` multilock -d `+s.base+` acquire -n x); echo "code $?."; read x`))
			script.Expect(".")
			refused := strings.Contains(wrapper, "timeout") // the others exec the command
			require.Equal(t, refused, strings.Contains(script.Out.String(), "code 125."), script.Out.String())
			want := "held"
			if refused {
				want = "free"
				require.Contains(t, script.Err.String(), "--pid $$")
			}
			require.Equal(t, want, s.lock("x").State)
			script.end()
		})
	}
}

// A release with the token counts once, even if the script ends immediately.
func TestReleaseIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for range 3 {
		cmd := clitest.Shell(t, s.command(), "sh", `t=$(multilock acquire -n x --ttl 3s) && multilock release -n x --token "$t"`)
		require.Zero(t, s.finish(cmd).code)
	}
	time.Sleep(4 * time.Second) // until the keepers have checked
	require.Equal(t, strings.Fields("acquired released acquired released acquired released"), happened(s.history("x")))
	require.Contains(t, s.must("metrics"), `multilock_runs_total{group=".locks",name="x"} 3`)
}

// The keeper inherits nothing from the script: no descriptor, and no working directory.
func TestKeeperLetsGoOfTheScript(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	held := filepath.Join(t.TempDir(), "flock")
	cmd := clitest.Shell(t, s.command(), "bash", `exec 9>`+held+`; flock -n 9 || exit; multilock acquire --json -n x; echo "ready."; read x`)
	script := begin(t, cmd)
	script.Expect("ready.")
	_, pid, found := strings.Cut(script.Out.String(), `"keeper_pid": `)
	require.True(t, found, script.Out.String())
	pid, _, _ = strings.Cut(pid, ",")
	cwd, err := os.Readlink("/proc/" + pid + "/cwd")
	require.NoError(t, err)
	require.Equal(t, "/", cwd)
	descriptors, err := os.ReadDir("/proc/" + pid + "/fd")
	require.NoError(t, err)
	for _, d := range descriptors {
		to, _ := os.Readlink("/proc/" + pid + "/fd/" + d.Name())
		require.NotEqual(t, held, to)
	}
	script.end()
}
