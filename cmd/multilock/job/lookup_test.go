//go:build linux

package job_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/job"
)

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
	write(t, dir+"/third/tool", "#!/bin/sh\necho yes\n", 0o755) // the one
	write(t, dir+"/fourth/tool", "#!/bin/sh\necho no\n", 0o755) // too late
	path := "PATH=" + dir + "/first:" + dir + "/second:third:" + dir + "/fourth"
	text, result := output(t, job.Spec{Args: []string{"tool"}, Env: []string{path}, Dir: dir})
	require.Equal(t, "yes\n", text, "also from an entry relative to the job's directory")
	require.Zero(t, result.Code)
	text, _ = output(t, job.Spec{Args: []string{"tool"}, Env: []string{"PATH="}, Dir: dir + "/fourth"})
	require.Equal(t, "no\n", text, "an empty entry is the current directory")
}

func TestScriptWithoutInterpreterLine(t *testing.T) {
	script := write(t, t.TempDir()+"/-script", "echo \"$# $1 $2\"\n", 0o755)
	text, result := output(t, job.Spec{Args: []string{script, "a b", "c"}})
	require.Equal(t, "2 a b c\n", text)
	require.Zero(t, result.Code)
}
