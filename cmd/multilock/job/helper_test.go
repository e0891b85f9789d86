//go:build linux

package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/internal/procfs"
	"github.com/multilock/go/multilock/locktest"
)

const (
	watchdog = 2 * time.Minute
	tick     = 5 * time.Millisecond
)

func shell(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

func start(t *testing.T, spec job.Spec) *job.Job {
	t.Helper()
	j, err := job.Start(spec)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, j.Stop(t.Context(), 0)) })
	return j
}

func await(t *testing.T, j *job.Job) job.Result {
	t.Helper()
	select {
	case <-j.Done():
	case <-time.After(watchdog):
		t.Fatal("the job does not end")
	}
	return j.Result()
}

// output runs a job and returns its output.
func output(t *testing.T, spec job.Spec) (string, job.Result) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer file.Close()
	spec.Stdout, spec.Stderr = file, file
	result := await(t, start(t, spec))
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	return string(text), result
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, watchdog, tick, what)
}

// readPIDs waits for a file that holds n numbers.
func readPIDs(t *testing.T, path string, n int) []int {
	t.Helper()
	var pids []int
	eventually(t, "the job writes its pids", func() bool {
		text, _ := os.ReadFile(path)
		pids = nil
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		return len(pids) == n && bytes.HasSuffix(text, []byte("\n"))
	})
	return pids
}

// state returns the letter of /proc/PID/stat, 0 if there is no such process.
func state(pid int) byte {
	p, _ := procfs.Proc.Stat(pid)
	return p.State
}

func parent(pid int) int {
	p, _ := procfs.Proc.Stat(pid)
	return p.Parent
}

func dead(pid int) bool {
	letter := state(pid)
	return letter == 0 || letter == 'Z' || letter == 'X'
}

func requireDead(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.True(t, dead(pid), "process %d lives, state %c", pid, state(pid))
	}
}

// children returns the processes whose parent is pid.
func children(pid int) (found []int) {
	pids, _ := procfs.Proc.PIDs()
	for _, child := range pids {
		if parent(child) == pid {
			found = append(found, child)
		}
	}
	return found
}

// hasGuard reports whether the guard of a runner has been executed. Its
// arguments show that.
func hasGuard(runner int) bool { return slices.ContainsFunc(children(runner), isGuard) }

func isGuard(pid int) bool {
	line, _ := procfs.Proc.Read(pid, "cmdline")
	return bytes.Contains(line, []byte("\x00"+job.GuardArg+"\x00"))
}

func itoa(n int) string { return strconv.Itoa(n) }

func lastPath(f *os.File) string { return itoa(int(f.Fd())) }

// descriptors lists the open descriptors of a process, as lines of number and target.
func descriptors(pid int) string {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	entries, _ := os.ReadDir(dir)
	var text strings.Builder
	for _, entry := range entries {
		target, _ := os.Readlink(dir + entry.Name())
		fmt.Fprintf(&text, "%s %s\n", entry.Name(), target)
	}
	return text.String()
}

func guardOf(t *testing.T, runner int) int {
	t.Helper()
	all := children(runner)
	i := slices.IndexFunc(all, isGuard)
	require.GreaterOrEqual(t, i, 0, "no guard")
	return all[i]
}

// parseMask reads a line of /proc/PID/status like "SigIgn:	0000000000000001".
func parseMask(t *testing.T, line []byte) uint64 {
	t.Helper()
	fields := strings.Fields(string(line))
	require.Len(t, fields, 2)
	mask, err := strconv.ParseUint(fields[1], 16, 64)
	require.NoError(t, err)
	return mask
}

const (
	runnerArg = "__runner"
	testMark  = "MULTILOCK_JOB_TEST"
	// guardGrace is short because a test waits for it to pass.
	guardGrace = 200 * time.Millisecond
)

// TestMain makes the test binary also run as guard and as runner of a job.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case job.GuardArg:
			os.Exit(job.Guard(os.Stdin))
		case runnerArg:
			os.Exit(runAsRunner(os.Args[2:]))
		case tracerArg:
			os.Exit(traceRunner(os.Args[2]))
		}
	}
	locktest.HearHangups()
	os.Exit(m.Run())
}

// runAsRunner does the same as `multilock run`, without a lock.
func runAsRunner(args []string) int {
	signals := make(chan os.Signal, 16)
	if catch := job.Signals(); len(catch) > 0 {
		signal.Notify(signals, catch...)
	}
	j, err := job.Start(job.Spec{
		Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: markedEnv(), Mark: mark(), JobControl: true, GuardGrace: guardGrace, Allowance: allowed(),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitCode(err)
	}
	j.Forward(context.Background(), signals)
	j.Result().Reraise()
	return j.Result().Code
}

// allowanceVariable is how long jobs may run.
const allowanceVariable = "MULTILOCK_JOB_TEST_ALLOWANCE"

func allowed() func() job.Allowance {
	patience, err := time.ParseDuration(os.Getenv(allowanceVariable))
	if err != nil {
		return nil
	}
	return allow(patience).now
}

func exitCode(err error) int {
	var missing *job.NotFoundError
	var broken *job.NotRunnableError
	switch {
	case errors.As(err, &missing):
		return 127
	case errors.As(err, &broken):
		return 126
	}
	return 125
}

func mark() string { return fmt.Sprintf("%s=%d", testMark, os.Getpid()) }

func markedEnv() []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, testMark+"=") {
			env = append(env, entry)
		}
	}
	return append(env, mark())
}
