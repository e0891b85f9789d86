package fslock_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A pid whose process has another start time than the record is another process.
// Rule: process-gone
func TestForgedStartTimeIsAnotherProcess(t *testing.T) {
	base := fresh(t)
	neighbour, stranger := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	earlier := self(t)
	earlier.Start--
	plant(t, neighbour, "job", claim(earlier, long, time.Minute))

	seen := look(t, observe(t, neighbour, "job", source.StalePolicy{}))
	require.Equal(t, source.StateDead.String(), seen.State.String())
	require.Contains(t, seen.Why, "another process")
	seen = look(t, observe(t, stranger, "job", source.StalePolicy{}))
	require.Equal(t, source.StateHeld.String(), seen.State.String())
	require.Contains(t, seen.Why, "another host")

	acquire(t, neighbour, "job", multilock.Options{TTL: long})
}

const rebootBeat = 100 * time.Millisecond

// beforeTheReboot is this host's identity before a reboot, and the current one; both have a machine id,
// which this system may lack.
func beforeTheReboot(t *testing.T) (then, now process.Identity) {
	now = self(t)
	now.Machine = "00000000ba5eba11"
	then = now
	then.Boot = "00000000-0000-4000-8000-00000000b007"
	return then, now
}

// The same machine id and host name under another boot may be a machine that was rebooted. It may also be a
// machine that is alive, but cut off, while a copy of it was started elsewhere; that one relies on its TTL.
// Rule: silence, process-gone
func TestHolderFromBeforeTheRebootKeepsItsTTL(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	then, now := beforeTheReboot(t)
	src := open(t, fslock.Options{Base: base, Self: now})
	lease := plant(t, src, "job", claim(then, long, rebootBeat))
	o := observe(t, src, "job", source.StalePolicy{})
	for start := boottime.Now(); start.Elapsed() < 8*rebootBeat; time.Sleep(rebootBeat / 10) {
		seen := look(t, o)
		require.Equal(t, source.StateHeld.String(), seen.State.String(), seen.Why)
	}
	require.NoError(t, lease.Renew(t.Context()))
}

// Copies of a running virtual machine share the boot id and the pid namespace, and have different names and
// machine ids: a pid that is free here is a process there.
// Rule: process-gone, silence
func TestHolderOnACopyOfThisMachineIsJudgedBySilence(t *testing.T) {
	base := fresh(t)
	here := self(t)
	here.Machine = "00000000ba5eba11"
	copied := here
	copied.Host, copied.Machine = "copy", "00000000feedf00d"
	copied.Start--
	src := open(t, fslock.Options{Base: base, Self: here})
	c := claim(copied, long, time.Minute)
	c.Job = true
	lease := plant(t, open(t, fslock.Options{Base: base, Self: copied}), "job", c)
	for _, pgid := range []int{1 << 30, here.PID} { // one that is free here, and one that is in use
		job := process.Group{Host: copied.Host, Machine: copied.Machine, Boot: copied.Boot, Namespace: copied.Namespace, PGID: pgid}
		require.NoError(t, lease.MarkJob(t.Context(), job))
		seen := look(t, observe(t, src, "job", source.StalePolicy{}))
		require.Equal(t, source.StateHeld.String(), seen.State.String())
		require.Contains(t, seen.Why, "its ttl of 1h0m0s has not passed, and runs on another host (copy)")
	}
}

// playContainer is the first process of a pid namespace. When it is killed, the kernel kills all others in
// the namespace.
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

// enterContainer mounts a /proc that shows the namespace in which this process was started.
func enterContainer() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// startAs starts a neighbour as the process with the number pid. Threads use numbers, too, so it may need
// more than one attempt.
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

// Two containers with one host name: a pid here is another process there, or none. Neither proves anything;
// the dead holder's missing heartbeat does.
// Rule: process-gone
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
			requireBroken(t, open(t, fslock.Options{Base: base}), "job", "no heartbeat")
			contender.must(t, order{Do: "verify"})
		})
	}
}

// The same interleaving with ours: a breaker breaks the lock that it judged, or none.
// Rule: break, I2
func TestSlowBreakerCannotReachAFreshLock(t *testing.T) {
	for view, who := range views(t) {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			killHolder(t, base, "job", order{TTL: 2 * time.Second})
			fast, slow := deadInEyesOf(t, base, who), deadInEyesOf(t, base, who)

			require.NoError(t, fast.Break(t.Context()))
			successor := acquire(t, open(t, fslock.Options{Base: base}), "job", multilock.Options{TTL: long})
			require.NoError(t, slow.Break(t.Context()), "what it judged dead is gone")
			require.NoError(t, successor.Verify(t.Context()))

			seen := look(t, slow)
			require.Equal(t, source.StateHeld.String(), seen.State.String())
			require.Equal(t, successor.Record().Token, seen.Record.Token)
			require.ErrorIs(t, slow.Break(t.Context()), source.ErrHeld)
			require.NoError(t, successor.Release(t.Context()))
		})
	}
}

// killHolder leaves the lock of a killed process.
func killHolder(t *testing.T, base, name string, how order) {
	t.Helper()
	holder := newNeighbour(t, setting{}, order{Base: base})
	how.Do, how.Name = "acquire", name
	holder.must(t, how)
	holder.End()
}

// deadInEyesOf is an observer that has seen the lock "job" dead.
func deadInEyesOf(t *testing.T, base string, who process.Identity) source.Observer {
	t.Helper()
	o := observe(t, open(t, fslock.Options{Base: base, Self: who}), "job", source.StalePolicy{})
	lookUntil(t, o, source.StateDead, nil)
	return o
}

// A holder that is suspended for longer than its TTL loses its lock, even to a process of its host that
// sees its process. When it resumes it knows.
// Rule: stopped, loss
func TestSuspendedHolderIsTakenOverAndKnows(t *testing.T) {
	for view, who := range views(t) {
		t.Run(view, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			holder := newNeighbour(t, setting{}, order{Base: base})
			holder.must(t, order{Do: "acquire", Name: "job", TTL: 2 * time.Second})
			holder.Signal(t, syscall.SIGSTOP)
			successor := acquire(t, open(t, fslock.Options{Base: base, Self: who}), "job", multilock.Options{TTL: long})

			holder.Signal(t, syscall.SIGCONT)
			for _, do := range []string{"cause", "verify", "fence", "release"} {
				require.Contains(t, holder.do(t, order{Do: do}).Is, "lost", do)
			}
			require.Zero(t, holder.do(t, order{Do: "remaining"}).Remaining)
			require.Contains(t, holder.do(t, order{Do: "release"}).Is, "released")

			require.NoError(t, successor.Verify(t.Context()))
			require.NoError(t, successor.Release(t.Context()))
		})
	}
}

// The kernel wakes a waiter on the holder's host when another process releases: the waiter acquires the
// lock although its next attempt is an hour away.
// Rule: none (wake-up)
func TestReleaseByAnotherProcessWakesAWaiter(t *testing.T) {
	base := fresh(t)
	holder := newNeighbour(t, setting{}, order{Base: base})
	holder.must(t, order{Do: "acquire", Name: "job", TTL: long})
	src := open(t, fslock.Options{Base: base})
	c, err := src.Contend(t.Context(), "job", claim(self(t), long, time.Minute), source.StalePolicy{})
	require.NoError(t, err)
	defer c.Close()

	_, err = c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
	wake := c.Wake()
	require.NotNil(t, wake)
	_, err = c.Try(t.Context())
	require.ErrorIs(t, err, source.ErrHeld)
	holder.must(t, order{Do: "release"})
	select {
	case <-wake:
	case <-time.After(watchdog):
		require.FailNow(t, "nothing woke the waiter")
	}

	lease, err := c.Try(t.Context())
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
}
