package main_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/procfs"
)

// As the first process of a container multilock reaps orphaned processes, forwards signals, and ends like the
// command.
func TestFirstProcessOfAContainer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a pid namespace")
	}
	contained := func(s *station, args ...string) *exec.Cmd {
		cmd := s.command(args...)
		unshare, err := exec.LookPath("unshare")
		if err != nil {
			s.t.Skip(err)
		}
		cmd.Args = append([]string{"unshare", "-p", "-f", "--mount-proc", "--kill-child", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = unshare
		return cmd
	}
	t.Run("orphans are reaped", func(t *testing.T) {
		t.Parallel()
		s := newStation(t)
		const orphans = `for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &); done; sleep 1
for i in $(seq 50); do n=$(grep -c '^State:.Z' /proc/[0-9]*/status | grep -c ':1$'); [ "$n" = 0 ] && break; sleep 0.2; done
echo "zombies: $n"; exit 7`
		got := s.finish(contained(s, "run", "-n", "x", "--", "sh", "-c", orphans))
		require.Equal(t, 7, got.code, got.stderr)
		require.Equal(t, "zombies: 0", strings.TrimSpace(got.stdout))
	})
	t.Run("signals are passed on", func(t *testing.T) {
		t.Parallel()
		s := newStation(t)
		runner := begin(t, contained(s, "run", "-n", "x", "--", "sh", "-c", `trap 'echo asked; exit 3' TERM; echo ready.; while :; do sleep 0.1; done`))
		runner.Expect("ready.")
		first := procfs.Proc.Children(runner.PID()) // of unshare
		require.Len(t, first, 1)
		require.NoError(t, syscall.Kill(first[0], syscall.SIGTERM))
		require.Equal(t, 3, runner.wait().code)
		require.Contains(t, runner.Out.String(), "asked")
		s.eventuallyFree("x")
	})
}
