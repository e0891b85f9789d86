//go:build linux

package job_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/process"
)

func TestExitCodes(t *testing.T) {
	for code := range 256 {
		result := await(t, start(t, job.Spec{Args: shell("exit $1", strconv.Itoa(code))}))
		require.Equal(t, code, result.Code)
		require.Zero(t, result.Signal)
	}
}

func TestDeathBySignal(t *testing.T) {
	for _, sig := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGKILL, unix.SIGUSR1, unix.SIGPIPE, unix.SIGTERM} {
		result := await(t, start(t, job.Spec{Args: shell("kill -$1 $$", strconv.Itoa(int(sig)))}))
		require.Equal(t, 128+int(sig), result.Code)
		require.Equal(t, sig, result.Signal)
	}
}

func TestDescriptorsAreTheSameOpenFiles(t *testing.T) {
	dir := t.TempDir()
	var files [3]*os.File
	for i := range files {
		file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(i)), os.O_RDWR|os.O_CREATE, 0o600)
		require.NoError(t, err)
		defer file.Close()
		files[i] = file
	}
	_, err := files[0].WriteString("first\nsecond\n")
	require.NoError(t, err)
	_, err = files[0].Seek(0, 0)
	require.NoError(t, err)
	script := `stat -L -c %d:%i /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2; echo error >&2`
	result := await(t, start(t, job.Spec{Args: shell(script), Stdin: files[0], Stdout: files[1], Stderr: files[2]}))
	require.Zero(t, result.Code)
	var want strings.Builder
	for _, file := range files {
		var info unix.Stat_t
		require.NoError(t, unix.Fstat(int(file.Fd()), &info))
		fmt.Fprintf(&want, "%d:%d\n", info.Dev, info.Ino)
	}
	got, err := os.ReadFile(files[1].Name())
	require.NoError(t, err)
	require.Equal(t, want.String(), string(got))
	offset, err := files[1].Seek(0, 1)
	require.NoError(t, err)
	require.EqualValues(t, len(got), offset, "the offset is shared, so the open file is")
	got, err = os.ReadFile(files[2].Name())
	require.NoError(t, err)
	require.Equal(t, "error\n", string(got))
}

func TestNothingElseIsInherited(t *testing.T) {
	text, result := output(t, job.Spec{Args: []string{"ls", "/proc/self/fd"}, JobControl: true})
	require.Zero(t, result.Code)
	plain, err := exec.Command("ls", "/proc/self/fd").Output()
	require.NoError(t, err)
	require.Equal(t, string(plain), text)
}

func TestEnvironment(t *testing.T) {
	text, _ := output(t, job.Spec{Args: []string{"env"}, Env: []string{"PATH=/usr/bin:/bin", "A=1", "B=first", "B=last"}})
	require.Equal(t, "PATH=/usr/bin:/bin\nA=1\nB=last\n", text)
}

func TestBadSpecsAreRefused(t *testing.T) {
	for _, spec := range []job.Spec{
		{},
		{Args: []string{"true"}, Mark: "NOT=there"},
		{Args: []string{"true"}, GuardGrace: -1},
		{Args: []string{"true", "a\x00b"}},
	} {
		_, err := job.Start(spec)
		require.Error(t, err)
		require.Equal(t, 125, exitCode(err))
	}
}

func TestGroupIsTheJobsOwn(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	j := start(t, job.Spec{Args: shell(`echo $$ >"$1"; exec sleep 1000`, pids)})
	leader := readPIDs(t, pids, 1)[0]
	group, err := process.FindGroup(leader)
	require.NoError(t, err)
	require.Equal(t, group, j.Group())
	require.Equal(t, leader, j.Group().PGID)
	require.NotEqual(t, unix.Getpgrp(), leader)
	self, err := process.Self()
	require.NoError(t, err)
	require.Equal(t, process.Alive, j.Group().Judge(self).Life)
	require.NoError(t, j.Signal(unix.SIGKILL))
	require.Equal(t, unix.SIGKILL, await(t, j).Signal)
	require.Equal(t, process.Gone, j.Group().Judge(self).Life)
	require.ErrorIs(t, j.Signal(unix.SIGKILL), os.ErrProcessDone)
}

// A runner that provides its identity gets the same group.
func TestGroupOfAJobOfAKnownRunner(t *testing.T) {
	self, err := process.Self()
	require.NoError(t, err)
	j := start(t, job.Spec{Args: []string{"sleep", "1000"}, Self: self})
	group, err := process.FindGroup(j.Group().PGID)
	require.NoError(t, err)
	require.Equal(t, group, j.Group())
	require.NotZero(t, group.Start)
}

// The number of a job that has been reaped may belong to another process.
func TestGroupOfAJobThatIsOver(t *testing.T) {
	j := start(t, job.Spec{Args: []string{"true"}})
	await(t, j)
	require.Zero(t, j.Group())
}

func TestSignalMaskAndDispositionsAreDefault(t *testing.T) {
	text, _ := output(t, job.Spec{Args: []string{"grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"}, JobControl: true})
	plain, err := exec.Command("grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status").Output()
	require.NoError(t, err)
	require.Equal(t, string(plain), text)
	require.Contains(t, text, "SigBlk:\t0000000000000000")
}

func TestStoppedWithoutJobControl(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	j := start(t, job.Spec{Args: shell(`echo $$ >"$1"; exec sleep 1000`, pids)})
	pid := readPIDs(t, pids, 1)[0]
	require.NoError(t, j.Signal(unix.SIGSTOP))
	eventually(t, "it stops", func() bool { return state(pid) == 'T' })
	require.NoError(t, j.Signal(unix.SIGCONT))
	eventually(t, "it goes on", func() bool { return state(pid) == 'S' })
	require.NoError(t, j.Signal(unix.SIGTERM))
	require.Equal(t, 128+15, await(t, j).Code)
}

func TestNothingLeaks(t *testing.T) {
	await(t, start(t, job.Spec{Args: []string{"true"}, JobControl: true}))
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 300 {
		j, err := job.Start(job.Spec{Args: []string{"true"}, JobControl: true})
		require.NoError(t, err)
		await(t, j)
	}
	for deadline := time.Now().Add(watchdog); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		require.True(t, time.Now().Before(deadline), "goroutines are left")
	}
	require.Equal(t, files, openFiles(t))
	require.Empty(t, children(os.Getpid()))
}

func TestGuardIsGoneAfterTheJob(t *testing.T) {
	files := openFiles(t)
	j, err := job.Start(job.Spec{Args: []string{"sleep", "1000"}})
	require.NoError(t, err)
	eventually(t, "the guard comes", func() bool { return hasGuard(os.Getpid()) })
	require.NoError(t, j.Signal(unix.SIGTERM))
	await(t, j)
	require.Empty(t, children(os.Getpid()))
	require.Equal(t, files, openFiles(t))
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func write(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	return path
}

func TestCommandsThatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	plain := write(t, dir+"/plain", "echo hi\n", 0o644)
	orphan := write(t, dir+"/orphan", "#!/no/such/interpreter\n", 0o755)
	for _, c := range []struct {
		args []string
		path string
		code int
	}{
		{[]string{""}, "/bin", 127},
		{[]string{"no-such-command"}, "/bin", 127},
		{[]string{"./no-such-command"}, "/bin", 127},
		{[]string{filepath.Base(dir)}, filepath.Dir(dir), 127}, // a directory in PATH
		{[]string{"true"}, dir, 127},
		{[]string{dir}, "/bin", 126},
		{[]string{plain}, "/bin", 126},
		{[]string{"plain"}, dir, 126},
		{[]string{orphan}, "/bin", 126},
		{[]string{plain + "/x"}, "/bin", 126}, // not a directory
	} {
		_, err := job.Start(job.Spec{Args: c.args, Env: []string{"PATH=" + c.path}})
		require.Error(t, err, c.args)
		require.Equal(t, c.code, exitCode(err), "%v: %v", c.args, err)
		require.Contains(t, err.Error(), c.args[0])
	}
}

func TestErrorsWrapTheSystems(t *testing.T) {
	_, err := job.Start(job.Spec{Args: []string{"/no/such/command"}})
	require.ErrorIs(t, err, unix.ENOENT)
	_, err = job.Start(job.Spec{Args: []string{"/"}})
	require.ErrorIs(t, err, unix.EACCES)
	require.ErrorContains(t, err, "directory")
}

func TestPathOfTheJobIsSearched(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/first/tool/file", "", 0o644)                 // a directory of that name
	write(t, dir+"/second/tool", "#!/bin/sh\necho no\n", 0o644) // not executable
	write(t, dir+"/third/tool", "#!/bin/sh\necho yes\n", 0o755) // the right one
	write(t, dir+"/fourth/tool", "#!/bin/sh\necho no\n", 0o755) // too late
	path := "PATH=" + dir + "/first:" + dir + "/second:third:" + dir + "/fourth"
	t.Chdir(dir)
	text, result := output(t, job.Spec{Args: []string{"tool"}, Env: []string{path}})
	require.Equal(t, "yes\n", text, "also from a relative entry")
	require.Zero(t, result.Code)
	t.Chdir("fourth")
	text, _ = output(t, job.Spec{Args: []string{"tool"}, Env: []string{"PATH="}})
	require.Equal(t, "no\n", text, "an empty entry is the current directory")
}

func TestScriptWithoutInterpreterLine(t *testing.T) {
	script := write(t, t.TempDir()+"/-script", "echo \"$# $1 $2\"\n", 0o755)
	text, result := output(t, job.Spec{Args: []string{script, "a b", "c"}})
	require.Equal(t, "2 a b c\n", text)
	require.Zero(t, result.Code)
}
