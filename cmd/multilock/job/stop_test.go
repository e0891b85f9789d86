//go:build linux

package job_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/job"
)

func TestStopIsPolite(t *testing.T) {
	dir := t.TempDir()
	j := start(t, job.Spec{Args: shell(`trap 'echo 1 >"$2"; exit 7' TERM; echo $$ >"$1"; while :; do sleep 0.01; done`, dir+"/pids", dir+"/trapped")})
	readPIDs(t, dir+"/pids", 1)
	require.NoError(t, j.Stop(t.Context(), watchdog))
	require.Equal(t, 7, j.Result().Code)
	require.FileExists(t, dir+"/trapped")
	require.NoError(t, j.Stop(t.Context(), watchdog), "a second time")
}

// TestStopEndsTheTree has one that ignores SIGTERM, one that left the session,
// one that left it and lost its parent, and one that is stopped.
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
