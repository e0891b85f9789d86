package job_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/job"
)

// A kernel thread for each job would cost a list of short jobs a tenth of its time.
func TestJobIsAwaitedWithoutAThreadInTheKernel(t *testing.T) {
	held, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Skip("Linux has had no descriptors of processes before 5.3")
	}
	require.NoError(t, unix.Close(held))
	j := start(t, job.Spec{Args: []string{"sleep", "1000"}})
	waits := fmt.Sprintf("%d 0x%x 0x%x ", unix.SYS_WAITID, unix.P_PID, j.Group().PGID)
	tasks, err := filepath.Glob("/proc/self/task/*/syscall")
	require.NoError(t, err)
	require.NotEmpty(t, tasks)
	for range 100 {
		for _, task := range tasks {
			call, _ := os.ReadFile(task) // the thread may have ended
			require.False(t, strings.HasPrefix(string(call), waits), "%s: %s", task, call)
		}
	}
	// A stop and a continue from outside have no effect, and the end is still noticed.
	require.NoError(t, j.Signal(unix.SIGSTOP))
	require.NoError(t, j.Signal(unix.SIGCONT))
	require.NoError(t, j.Signal(unix.SIGKILL))
	require.Equal(t, unix.SIGKILL, await(t, j).Signal)
}
