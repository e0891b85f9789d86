package fslock_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/fslock"
)

// playContainer is the first process of a pid namespace. When it is killed, the
// kernel kills all others in there.
func playContainer() error {
	if err := enterContainer(); err != nil {
		return err
	}
	var s setting
	if err := actor.Part(&s); err != nil {
		return err
	}
	if s.PID == 1 {
		return obeyOrders()
	}
	inmate, err := startAs(s.PID, os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	return inmate.Wait()
}

// enterContainer mounts a /proc that shows the namespace this process was
// started in.
func enterContainer() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// startAs starts a neighbour as the process that gets the number pid. Threads take
// numbers too, so that it may need more than one attempt.
func startAs(pid int, in, out *os.File) (*exec.Cmd, error) {
	for range 100 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			return nil, err
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = actor.Environ("neighbour")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		if cmd.Process.Pid == pid {
			return cmd, nil
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return nil, fmt.Errorf("no process got the number %d", pid)
}

// Two containers with one host name: what is a pid here is another process
// there, or none. Neither proves anything; the dead holder's silence does.
func TestContainersWithOneHostName(t *testing.T) {
	requireRoot(t, "pid namespaces")
	for name, pids := range map[string]struct{ holder, contender int }{
		"the holder's number belongs to the contender": {1, 1},
		"the holder's number belongs to nobody there":  {4711, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			holder := newNeighbour(t, setting{Container: true, PID: pids.holder}, order{Base: base})
			contender := newNeighbour(t, setting{Container: true, PID: pids.contender}, order{Base: base})
			holder.must(t, order{Do: "acquire", Name: "job", TTL: 3 * time.Second})

			seen := contender.must(t, order{Do: "look", Name: "job"})
			require.Equal(t, "held", seen.State)
			require.Contains(t, seen.Why, "another pid namespace")
			require.Contains(t, seen.Holder, fmt.Sprintf(" pid %d", pids.holder))
			require.Contains(t, contender.do(t, order{Do: "try", Name: "job"}).Is, "held")
			holder.must(t, order{Do: "verify"})

			holder.End()
			contender.must(t, order{Do: "acquire", Name: "job", TTL: long})
			requireBroken(t, open(t, fslock.Options{Base: base}), "job", "no sign of life")
			contender.must(t, order{Do: "verify"})
		})
	}
}
