package process_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/process"
)

// ownName is how messages name the processes that the tests start; the kernel keeps 15 bytes of a name.
func ownName() string {
	name := filepath.Base(os.Args[0])
	return "(" + name[:min(len(name), 15)] + ")"
}

func needRoot(t *testing.T, forWhat string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skipf("needs root to %s", forWhat)
	}
}

// inState waits until a child has ended (WEXITED) or stopped (WSTOPPED), without reaping it.
func inState(t *testing.T, pid, state int) {
	t.Helper()
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, state|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			require.NoError(t, err)
			return
		}
	}
}

// zombify kills a child and does not reap it.
func zombify(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, unix.Kill(pid, unix.SIGKILL))
	inState(t, pid, unix.WEXITED)
}

func TestStoppedIsAliveAndZombieIsGone(t *testing.T) {
	me, child := self(t), sitter(t)
	id := find(t, child.Process.Pid)
	require.NoError(t, unix.Kill(id.PID, unix.SIGSTOP))
	inState(t, id.PID, unix.WSTOPPED)
	requireLife(t, process.Alive, id.Judge(me))
	zombify(t, id.PID)
	found := id.Judge(me)
	requireLife(t, process.Gone, found)
	require.Contains(t, found.Why, "zombie")
	require.Equal(t, id, find(t, id.PID))
	require.NoError(t, id.Wait(t.Context(), me))
}

func TestProcessWithoutItsMainThreadIsAlive(t *testing.T) {
	me, child := self(t), actor.Prepare(t, "headless", nil)
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Start(t)
	hear[struct{}](t, child)
	id := find(t, child.Process.Pid)
	group := findGroup(t, id.PID)
	requireLife(t, process.Alive, id.Judge(me))
	requireLife(t, process.Alive, group.Judge(me))
	zombify(t, id.PID)
	requireLife(t, process.Gone, id.Judge(me))
	requireLife(t, process.Gone, group.Judge(me))
}

func TestOtherStartIsAnotherProcess(t *testing.T) {
	me, child := self(t), sitter(t)
	id := find(t, child.Process.Pid)
	for _, start := range []uint64{1, id.Start - 1, id.Start + 1} {
		forged := id
		forged.Start = start
		found := forged.Judge(me)
		requireLife(t, process.Gone, found)
		require.Contains(t, found.Why, "now belongs to another process "+ownName())
		require.NoError(t, forged.Wait(t.Context(), me))
	}
}

func TestNamesThatLookLikeFields(t *testing.T) {
	me := self(t)
	for _, name := range []string{") (", "a) Z 1 2", "two words", "((x))", "line\nfeed"} {
		sleep := namedSleep(t, name)
		id := find(t, sleep.Process.Pid)
		found := id.Judge(me)
		requireLife(t, process.Alive, found)
		if name != "line\nfeed" {
			require.Contains(t, found.Why, "("+name+")")
		}
		require.NotContains(t, found.Why, "\n")
		id.Start++
		requireLife(t, process.Gone, id.Judge(me))
	}
}

// namedSleep runs a copy of sleep, whose process name the kernel takes from the file.
func namedSleep(t *testing.T, name string) *exec.Cmd {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	program, err := os.ReadFile(sleep)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, program, 0o700))
	cmd := exec.Command(path, "3600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd
}

func TestOtherPIDNamespace(t *testing.T) {
	needRoot(t, "make a pid namespace")
	me, inner := self(t), startIn(t, unix.CLONE_NEWPID, "report")
	id := hear[process.Identity](t, inner)
	require.Equal(t, 1, id.PID)
	require.Equal(t, me.Boot, id.Boot)
	require.Equal(t, find(t, inner.Process.Pid).Start, id.Start, "its own start is known without its number")
	found := id.Judge(me)
	requireLife(t, process.Unknown, found)
	require.Contains(t, found.Why, "another pid namespace")
	requireLife(t, process.Unknown, me.Judge(id))
}

// A process has different start times in different time namespaces.
func TestOtherTimeNamespace(t *testing.T) {
	needRoot(t, "make a time namespace")
	if _, err := os.Stat("/proc/self/ns/time"); err != nil {
		t.Skip("no time namespaces before Linux 5.6")
	}
	me, inner := self(t), actor.Prepare(t, "report", nil)
	unshare, err := exec.LookPath("unshare")
	require.NoError(t, err)
	inner.Args = []string{unshare, "--time", "--boottime", "86400", "--fork", "--kill-child", inner.Path}
	inner.Path = unshare
	inner.Start(t)
	id := hear[process.Identity](t, inner)
	require.Equal(t, me.Boot, id.Boot)
	requireLife(t, process.Unknown, id.Judge(me))
}

// Here /proc shows other processes than those that the numbers stand for.
func TestProcOfTheOuterNamespace(t *testing.T) {
	needRoot(t, "make a pid namespace")
	seen := hear[outerFindings](t, startIn(t, unix.CLONE_NEWPID, "outer"))
	require.NotZero(t, seen.Self.Start)
	require.Zero(t, seen.Child.Start)
	requireLife(t, process.Alive, seen.SelfLife)
	requireLife(t, process.Alive, seen.ChildLife)
	requireLife(t, process.Alive, seen.Forged)
	requireLife(t, process.Gone, seen.Gone)
	requireLife(t, process.Alive, seen.Group)
	requireLife(t, process.Alive, seen.GroupForged)
	requireLife(t, process.Gone, seen.GroupGone)
	requireLife(t, process.Unknown, seen.Job)
}

// startIn starts an actor in its own namespaces.
func startIn(t *testing.T, namespaces uintptr, role string) *actor.Actor {
	t.Helper()
	a := actor.Prepare(t, role, nil)
	a.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	a.Start(t)
	return a
}

// marked starts the leader of a group that carries the mark of a new token.
func marked(t *testing.T) (token string, leader *actor.Actor) {
	t.Helper()
	token, leader = jobOf(t, "sit")
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leader.Start(t)
	hear[struct{}](t, leader)
	return token, leader
}

// examine asks an actor in other namespaces about a process, its group and its job.
func examine(t *testing.T, role string, namespaces uintptr, pid int, token string) findings {
	t.Helper()
	judge := startIn(t, namespaces, role)
	judge.Tell(t, exam{Process: find(t, pid), Group: findGroup(t, pid), Token: token})
	return hear[findings](t, judge)
}

// A process that may not be inspected proves nothing about a job.
func TestProcessOfAnotherUser(t *testing.T) {
	needRoot(t, "become somebody else")
	token, child := marked(t)
	seen := examine(t, "nobody", 0, child.Process.Pid, token)
	requireLife(t, process.Alive, seen.Process)
	requireLife(t, process.Alive, seen.Group)
	requireLife(t, process.Unknown, seen.Job)
	require.Contains(t, seen.Job.Why, "may not be looked into")
	require.Equal(t, find(t, child.Process.Pid), seen.Found)

	zombify(t, child.Process.Pid)
	seen = examine(t, "nobody", 0, child.Process.Pid, token)
	requireLife(t, process.Gone, seen.Process)
	requireLife(t, process.Gone, seen.Group)
}

// Behind hidepid another user's zombie cannot be distinguished from a running process, so both count as
// alive.
func TestProcessThatIsHidden(t *testing.T) {
	needRoot(t, "mount /proc with hidepid")
	token, child := marked(t)
	for range 2 {
		seen := examine(t, "hidden", unix.CLONE_NEWNS, child.Process.Pid, token)
		requireLife(t, process.Alive, seen.Process)
		require.Contains(t, seen.Process.Why, "does not show")
		requireLife(t, process.Alive, seen.Group)
		requireLife(t, process.Unknown, seen.Job)
		require.Contains(t, seen.Job.Why, "may hide")
		require.Zero(t, seen.Found.Start)
		zombify(t, child.Process.Pid)
	}
}
