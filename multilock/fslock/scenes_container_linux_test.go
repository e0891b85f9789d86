package fslock_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
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

// finding is what playReuse reports.
type finding struct {
	PID           int
	State, Why    string
	BeforeTheKill string
}

// playReuse is the first process of a pid namespace. It lets a holder die,
// gives its number to another process, and looks at the lock.
func playReuse() error {
	if err := enterContainer(); err != nil {
		return err
	}
	base, err := bufio.NewReader(os.Stdin).ReadString('\n')
	if err != nil {
		return err
	}
	found, err := reuse(strings.TrimSpace(base))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

const reusedPID = 3000

// startTick is longer than the kernel's unit of a process's start. Two processes of
// one number that started within one unit cannot be told apart: the lock of the
// first then counts as held until it is silent.
const startTick = 20 * time.Millisecond

func reuse(base string) (found finding, err error) {
	orders, input, err := os.Pipe()
	if err != nil {
		return found, err
	}
	defer input.Close()
	holder, err := startHolder(base, orders, input)
	if err != nil {
		return found, err
	}
	var observer doer
	if err := observer.open(order{Base: base}); err != nil {
		return found, err
	}
	ctx := context.Background()
	found.BeforeTheKill = observer.look(ctx, order{Name: "job"}).State
	if err := end(holder); err != nil {
		return found, err
	}
	time.Sleep(startTick)
	other, err := startAs(reusedPID, orders, os.Stderr)
	if err != nil {
		return found, err
	}
	seen := observer.look(ctx, order{Name: "job"})
	found.PID, found.State, found.Why = other.Process.Pid, seen.State, seen.Why
	return found, end(other)
}

// startHolder starts the neighbour that takes the lock "job".
func startHolder(base string, orders, input *os.File) (*exec.Cmd, error) {
	output, answers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer output.Close()
	holder, err := startAs(reusedPID, orders, answers)
	if err != nil {
		return nil, err
	}
	told, heard := json.NewEncoder(input), json.NewDecoder(output)
	for _, o := range []order{{Do: "open", Base: base}, {Do: "acquire", Name: "job", TTL: long}} {
		var a answer
		if err := errors.Join(told.Encode(o), heard.Decode(&a)); err != nil {
			return nil, err
		}
		if a.Error != "" {
			return nil, errors.New(a.Error)
		}
	}
	return holder, nil
}

func end(cmd *exec.Cmd) error {
	err := cmd.Process.Kill()
	_ = cmd.Wait() // it says that it was killed
	return err
}

// A number that really belongs to another process by now.
func TestReusedPIDIsNotTheHolder(t *testing.T) {
	requireRoot(t, "a pid namespace and ns_last_pid")
	t.Parallel()
	base := fresh(t)
	p := actor.Prepare(t, "reuse", nil)
	p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	p.Start(t)
	_, err := p.Input.Write([]byte(base + "\n"))
	require.NoError(t, err)
	var found finding
	p.Hear(t, &found)
	require.Equal(t, "held", found.BeforeTheKill)
	require.Equal(t, reusedPID, found.PID)
	require.Equal(t, "dead", found.State, found.Why)
	require.Contains(t, found.Why, "another process")

	seen, err := multilock.Inspect(t.Context(), open(t, fslock.Options{Base: base}), "job", source.Patience{})
	require.NoError(t, err)
	require.Equal(t, source.StateHeld.String(), seen.State.String(), "from outside of the namespace nobody can know")
}
