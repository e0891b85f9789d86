package fslock_test

import (
	"bufio"
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

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
)

// pidVariable is the number that the puppet in a container is to have.
const pidVariable = "MULTILOCK_TEST_PID"

// playContainer is the first process of a pid namespace. When it is killed, the
// kernel kills all others in there.
func playContainer() error {
	if err := enterContainer(); err != nil {
		return err
	}
	pid, err := strconv.Atoi(os.Getenv(pidVariable))
	if err != nil {
		return err
	}
	if pid == 1 {
		return playPuppet(os.Stdin, os.Stdout)
	}
	inmate, err := startAs(pid, "puppet")
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

// startAs starts a role as the process that gets the number pid. Threads take
// numbers too, so that it may need more than one attempt.
func startAs(pid int, role string) (*exec.Cmd, error) {
	for range 100 {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			return nil, err
		}
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), childVariable+"="+role)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		if pid == 0 || cmd.Process.Pid == pid {
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
			holder := newPuppet(t, setting{Container: true, PID: pids.holder}, order{Base: base})
			contender := newPuppet(t, setting{Container: true, PID: pids.contender}, order{Base: base})
			holder.must(t, order{Do: "acquire", Name: "job", TTL: 5 * time.Second})

			seen := contender.must(t, order{Do: "look", Name: "job"})
			require.Equal(t, "held", seen.State)
			require.Contains(t, seen.Why, "another pid namespace")
			require.Contains(t, seen.Holder, fmt.Sprintf(" pid %d", pids.holder))
			require.Contains(t, contender.do(t, order{Do: "try", Name: "job"}).Is, "held")
			holder.must(t, order{Do: "verify"})

			silent := boottime.Now()
			holder.end()
			contender.must(t, order{Do: "acquire", Name: "job", TTL: long})
			require.GreaterOrEqual(t, silent.Elapsed(), 4*time.Second, "it was taken by something else than silence")
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

func reuse(base string) (found finding, err error) {
	holder, err := startHolder(base, reusedPID)
	if err != nil {
		return found, err
	}
	o := puppet{}
	if err := o.open(order{Base: base}); err != nil {
		return found, err
	}
	ctx := unlimited()
	found.BeforeTheKill = o.look(ctx, order{Name: "job"}).State
	if err := errors.Join(holder.Process.Kill(), ignoreExit(holder.Wait())); err != nil {
		return found, err
	}
	other, err := startAs(reusedPID, "puppet")
	if err != nil {
		return found, err
	}
	seen := o.look(ctx, order{Name: "job"})
	found.PID, found.State, found.Why = other.Process.Pid, seen.State, seen.Why
	return found, errors.Join(other.Process.Kill(), ignoreExit(other.Wait()))
}

// startHolder starts a puppet with that number, which takes the lock "job".
func startHolder(base string, pid int) (*exec.Cmd, error) {
	orders, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	output, answers, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdin, stdout := os.Stdin, os.Stdout
	os.Stdin, os.Stdout = orders, answers
	holder, err := startAs(pid, "puppet")
	os.Stdin, os.Stdout = stdin, stdout
	if err != nil {
		return nil, err
	}
	heard := json.NewDecoder(output)
	for _, o := range []order{{Do: "open", Base: base}, {Do: "acquire", Name: "job", TTL: long}} {
		if err := json.NewEncoder(input).Encode(o); err != nil {
			return nil, err
		}
		var a answer
		if err := heard.Decode(&a); err != nil || a.Error != "" {
			return nil, errors.Join(err, errors.New("the holder said "+a.Error))
		}
	}
	return holder, nil
}

func ignoreExit(err error) error {
	if errors.As(err, new(*exec.ExitError)) {
		return nil
	}
	return err
}

// A number that really belongs to another process by now.
func TestReusedPIDIsNotTheHolder(t *testing.T) {
	requireRoot(t, "a pid namespace and ns_last_pid")
	t.Parallel()
	base := fresh(t)
	p := prepareChild(t, "reuse")
	p.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	input, err := p.StdinPipe()
	require.NoError(t, err)
	p.start(t)
	_, err = input.Write([]byte(base + "\n"))
	require.NoError(t, err)
	var found finding
	require.NoError(t, p.answers.Decode(&found))
	require.Equal(t, "held", found.BeforeTheKill)
	require.Equal(t, reusedPID, found.PID)
	require.Equal(t, "dead", found.State, found.Why)
	require.Contains(t, found.Why, "another process")

	seen, err := multilock.Inspect(t.Context(), open(t, fslock.Options{Base: base}), "job", multilock.Patience{})
	require.NoError(t, err)
	require.Equal(t, multilock.Held.String(), seen.State.String(), "from outside of the namespace nobody can know")
}
