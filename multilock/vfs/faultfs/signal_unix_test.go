//go:build linux || darwin || freebsd

package faultfs_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// The test binary, started with this variable, makes the directories "0", "1" and
// "2" in it, and ends itself, or stops, at the second operation.
const (
	baseVariable = "FAULTFS_TEST_BASE"
	howVariable  = "FAULTFS_TEST_HOW"
)

func TestMain(m *testing.M) {
	if base := os.Getenv(baseVariable); base != "" {
		makeThree(base, os.Getenv(howVariable))
		return
	}
	os.Exit(m.Run())
}

func makeThree(base, how string) {
	faulty := faultfs.New(vfs.OS{}, nil)
	dir, err := faulty.OpenDir(base)
	if err != nil {
		panic(err)
	}
	faulty.Inject(map[string]faultfs.Injector{
		"crash before": faultfs.CrashAt(1, faultfs.Before),
		"crash after":  faultfs.CrashAt(1, faultfs.After),
		"stop before":  faultfs.StopAt(1, faultfs.Before),
		"stop after":   faultfs.StopAt(1, faultfs.After),
	}[how])
	for i := range 3 {
		if err := dir.Mkdir(fmt.Sprint(i), 0o777); err != nil {
			panic(err)
		}
	}
	fmt.Println("done")
}

func child(t *testing.T, base, how string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), baseVariable+"="+base, howVariable+"="+how)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

func listing(t *testing.T, base string) string {
	t.Helper()
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func TestCrashAt(t *testing.T) {
	for how, left := range map[string]string{"crash before": "0", "crash after": "0 1"} {
		base := t.TempDir()
		cmd, _ := child(t, base, how)
		require.ErrorContains(t, cmd.Wait(), "killed")
		require.Equal(t, left, listing(t, base))
	}
}

func TestStopAt(t *testing.T) {
	for how, left := range map[string]string{"stop before": "0", "stop after": "0 1"} {
		base := t.TempDir()
		cmd, out := child(t, base, how)
		var status unix.WaitStatus
		_, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil)
		require.NoError(t, err)
		require.True(t, status.Stopped())
		require.Equal(t, left, listing(t, base))
		require.NoError(t, unix.Kill(cmd.Process.Pid, unix.SIGCONT))
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "done\n", line)
		require.Equal(t, "0 1 2", listing(t, base))
	}
}
