//go:build linux

package job_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/boottime"
)

// allowance is an allowance that a test extends.
type allowance struct {
	mu      sync.Mutex
	until   boottime.Instant
	renewed chan struct{}
	asked   chan struct{} // receives one value for each call
}

func allow(patience time.Duration) *allowance {
	return &allowance{until: boottime.Now().Add(patience), renewed: make(chan struct{}), asked: make(chan struct{}, 1)}
}

// now is the Spec.Allowance. No process of the job may run a second after Until.
func (a *allowance) now() job.Allowance {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.asked <- struct{}{}:
	default:
	}
	return job.Allowance{Until: a.until, Others: a.until.Add(time.Second), Renewed: a.renewed}
}

// renew extends it, and returns when the runner has noticed.
func (a *allowance) renew(patience time.Duration) {
	a.mu.Lock()
	select {
	case <-a.asked:
	default:
	}
	close(a.renewed)
	a.until, a.renewed = boottime.Now().Add(patience), make(chan struct{})
	a.mu.Unlock()
	<-a.asked
}

// guardsOf returns the guards of this process's jobs.
func guardsOf(t *testing.T, j *job.Job) []int {
	t.Helper()
	var guards []int
	for _, child := range children(os.Getpid()) {
		line, _ := os.ReadFile("/proc/" + itoa(child) + "/cmdline")
		if strings.HasSuffix(string(line), "\x00"+job.GuardArg+"\x00"+itoa(j.Group().PGID)+"\x00") && !dead(child) {
			guards = append(guards, child)
		}
	}
	return guards
}

// otherGuard waits for another guard than this one.
func otherGuard(t *testing.T, j *job.Job, than int) (guard int) {
	t.Helper()
	eventually(t, "there is another guard", func() bool {
		guards := guardsOf(t, j)
		if len(guards) != 1 || guards[0] == than {
			return false
		}
		guard = guards[0]
		return true
	})
	return guard
}

// If a runner is stopped for too long, the guard ends the whole job.
// Rule: guard
func TestStoppedRunnersJobIsEnded(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := runner(shell(`export PIDS="$1"
		sh -c 'trap "" TERM; echo $$ >>"$PIDS"; while :; do sleep 1000; done' &
		setsid sh -c 'echo $$ >>"$PIDS"; while :; do sleep 1000; done' &
		echo $$ >>"$PIDS"; wait`, pids)...)
	cmd.Env = append(os.Environ(), allowanceVariable+"=6s")
	begin(t, cmd)
	all := readPIDs(t, pids, 3)
	eventually(t, "the guard comes", func() bool { return hasGuard(cmd.Process.Pid) })
	require.NoError(t, cmd.Process.Signal(unix.SIGSTOP))
	for _, pid := range all {
		eventually(t, "it dies", func() bool { return dead(pid) })
	}
	require.NoError(t, cmd.Process.Signal(unix.SIGCONT))
	require.Error(t, cmd.Wait())
	require.Equal(t, 143, cmd.ProcessState.ExitCode())
}

// The guard sends SIGTERM first, if there is time for that.
// Rule: guard
func TestGuardIsPolite(t *testing.T) {
	dir := t.TempDir()
	a := allow(time.Hour)
	j := start(t, job.Spec{
		Args: shell(`trap 'exit 7' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, dir+"/pids"), Allowance: a.now,
	})
	readPIDs(t, dir+"/pids", 1)
	a.renew(0)
	require.Equal(t, 7, await(t, j).Code)
}

// A runner that is stopped while it ends its job has sent SIGTERM; the guard sends SIGKILL.
// Rule: guard
func TestGuardKillsWhatIsBeingEnded(t *testing.T) {
	dir := t.TempDir()
	a := allow(time.Hour)
	j := start(t, job.Spec{
		Args: shell(`trap 'echo 1 >>"$2"' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, dir+"/pids", dir+"/trapped"), Allowance: a.now,
	})
	readPIDs(t, dir+"/pids", 1)
	otherGuard(t, j, 0)
	stopped := make(chan error, 1)
	go func() { stopped <- j.Stop(t.Context(), time.Hour) }()
	readPIDs(t, dir+"/trapped", 1)
	a.renew(0)
	require.NoError(t, <-stopped)
	require.Equal(t, unix.SIGKILL, j.Result().Signal)
}

// Renewals never wait for a guard, and a guard that does not read them is replaced.
// Rule: guard
func TestGuardThatTakesNoNewsIsReplaced(t *testing.T) {
	for name, sig := range map[string]unix.Signal{"stopped": unix.SIGSTOP, "killed": unix.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			pids := filepath.Join(t.TempDir(), "pids")
			a := allow(time.Hour)
			j := start(t, job.Spec{Args: shell(`echo $$ >"$1"; exec sleep 1000`, pids), Allowance: a.now})
			readPIDs(t, pids, 1)
			guard := otherGuard(t, j, 0)
			require.NoError(t, unix.Kill(guard, sig))
			eventually(t, "it does not run", func() bool { return state(guard) != 'S' && state(guard) != 'R' })
			for range 64 << 10 / len(`{"term":1,"kill":2}`) {
				a.renew(time.Hour)
			}
			otherGuard(t, j, guard)
			require.False(t, dead(j.Group().PGID))
			a.renew(-time.Hour)
			await(t, j)
		})
	}
}

// Time has no effect on the guard of a job without an allowance.
func TestGuardOfAJobWithoutAnAllowance(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	j := start(t, job.Spec{Args: shell(`echo $$ >"$1"; exec sleep 1000`, pids)})
	readPIDs(t, pids, 1)
	otherGuard(t, j, 0)
	require.False(t, dead(j.Group().PGID))
	require.NoError(t, j.Stop(t.Context(), watchdog))
}

// A job that is suspended with its runner is ended when its time is over; fg then shows its result.
// Rule: guard
func TestSuspendedForTooLong(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	s := startBash(t)
	s.run(`export ` + allowanceVariable + `=6s; $RUN bash -c 'echo $$ >` + pids + `; ` + tireless + `'`)
	s.expect("ready")
	pid := readPIDs(t, pids, 1)[0]
	eventually(t, "the guard comes", func() bool { return hasGuard(parent(pid)) })
	s.suspend()
	eventually(t, "it dies", func() bool { return dead(pid) })
	s.run("fg")
	s.prompt()
	s.requireCode(143)
}

func TestStopIsPolite(t *testing.T) {
	dir := t.TempDir()
	j := start(t, job.Spec{Args: shell(`trap 'echo 1 >"$2"; exit 7' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, dir+"/pids", dir+"/trapped")})
	readPIDs(t, dir+"/pids", 1)
	require.NoError(t, j.Stop(t.Context(), watchdog))
	require.Equal(t, 7, j.Result().Code)
	require.FileExists(t, dir+"/trapped")
	require.NoError(t, j.Stop(t.Context(), watchdog), "a second time")
}

// TestStopEndsTheTree has a process that ignores SIGTERM, one that left the session, one that left it and
// lost its parent, and one that is stopped.
func TestStopEndsTheTree(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	script := `
		export PIDS="$1"
		sh -c 'trap "" TERM; echo $$ >>"$PIDS"; while :; do sleep 1000; done' &
		setsid sh -c 'echo $$ >>"$PIDS"; while :; do sleep 1000; done' &
		(setsid sh -c 'echo $$ >>"$PIDS"; exec sleep 1000' &)
		sh -c 'echo $$ >>"$PIDS"; kill -STOP $$; exec sleep 1000' &
		echo $$ >>"$PIDS"
		wait`
	j := start(t, job.Spec{Args: shell(script, pids), Env: markedEnv(), Mark: mark()})
	all := readPIDs(t, pids, 5)
	require.NoError(t, j.Stop(t.Context(), 50*time.Millisecond))
	requireDead(t, all)
	require.Equal(t, unix.SIGTERM, j.Result().Signal)
}

func TestStopFindsDescendantsWithoutMark(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	script := `export PIDS="$1"
		setsid sh -c 'echo $$ >>"$PIDS"
			env -i PIDS="$PIDS" setsid sh -c "echo \$\$ >>\"\$PIDS\"; exec sleep 1000" & exec sleep 1000' &
		echo $$ >>"$PIDS"; wait`
	j := start(t, job.Spec{Args: shell(script, pids)})
	all := readPIDs(t, pids, 3)
	require.NoError(t, j.Stop(t.Context(), watchdog))
	requireDead(t, all)
}

func TestStoppedJobCanBeEnded(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	j := start(t, job.Spec{Args: shell(`trap 'exit 9' TERM; echo $$ >"$1"; kill -STOP $$; while :; do sleep 0.01; done`, pids)})
	pid := readPIDs(t, pids, 1)[0]
	eventually(t, "it stops", func() bool { return state(pid) == 'T' })
	require.NoError(t, j.Stop(t.Context(), watchdog))
	require.Equal(t, 9, j.Result().Code)
}

func TestContextCutsTheGraceShort(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	j := start(t, job.Spec{Args: shell(`trap "" TERM; echo $$ >"$1"; while :; do sleep 1000; done`, pids)})
	readPIDs(t, pids, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, j.Stop(ctx, time.Hour))
	require.Equal(t, unix.SIGKILL, j.Result().Signal)
}

func TestStopAfterTheEndEndsWhatIsLeftInTheGroup(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	j := start(t, job.Spec{Args: shell(`sleep 1000 & echo $! >"$1"; exit 3`, pids)})
	left := readPIDs(t, pids, 1)
	require.Equal(t, 3, await(t, j).Code)
	require.False(t, dead(left[0]), "the end of a job ends nobody else")
	require.NoError(t, j.Stop(t.Context(), watchdog))
	requireDead(t, left)
}

func TestStopLeavesOthersAlone(t *testing.T) {
	other := start(t, job.Spec{Args: []string{"sleep", "1000"}})
	bystander := exec.Command("sleep", "1000")
	require.NoError(t, bystander.Start())
	defer bystander.Wait()
	defer bystander.Process.Kill()
	j := start(t, job.Spec{Args: []string{"sleep", "1000"}, Env: markedEnv(), Mark: mark()})
	require.NoError(t, j.Stop(t.Context(), watchdog))
	require.False(t, dead(bystander.Process.Pid))
	require.False(t, dead(other.Group().PGID))
}
