//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// smallBuild is a program without two of the sources, in directories of its own.
type smallBuild struct {
	*station
	binary string
}

func buildSmall(t *testing.T) smallBuild {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "multilock")
	require.NoError(t, clitest.Build(".", binary, "no_mongodb", "no_cloudshell"))
	return smallBuild{newStation(t), binary}
}

// in is the program in a directory with nothing else.
func (b smallBuild) in(t *testing.T) smallBuild {
	t.Helper()
	moved := filepath.Join(t.TempDir(), "multilock")
	require.NoError(t, os.Link(b.binary, moved))
	return smallBuild{newStation(t), moved}
}

// beside is the place of the full build.
func (b smallBuild) beside() string { return filepath.Join(filepath.Dir(b.binary), "multilock-full") }

// impostor puts a script there that tells what it was given, and ends with code 7.
func (b smallBuild) impostor(at string) {
	b.t.Helper()
	script := "#!/bin/sh\n" + `for arg; do echo "<$arg>"; done; echo "$MULTILOCK_PASSWORD"; cat; exit 7` + "\n"
	require.NoError(b.t, os.WriteFile(at, []byte(script), 0o700)) //nolint:gosec // it is to be run
}

func (b smallBuild) runWith(vars []string, args ...string) ended {
	b.t.Helper()
	cmd := clitest.Command(b.t, vars, args...)
	cmd.Path, cmd.Args[0], cmd.Stdin = b.binary, b.binary, strings.NewReader("input\n")
	return b.finish(cmd)
}

func (b smallBuild) runIt(args ...string) ended {
	b.t.Helper()
	return b.runWith(nil, args...)
}

// lacked are URLs of the sources that the small build does not have.
func lacked() []string {
	return []string{
		"mongodb://h/d.c", "mongodb+srv://h/d.c", "cook+mongodb://h/d.c?period=5m", "cook+mongodb+srv://h/d.c?period=5m",
		"cloudshell://u@h/4711", "cloudshell:",
	}
}

func TestSmallBuild(t *testing.T) {
	t.Parallel()
	small := buildSmall(t)

	t.Run("alone it says what to do", func(t *testing.T) {
		t.Parallel()
		alone := small.in(t)
		for _, url := range lacked() {
			got := alone.runIt("--source", url, "run", "--", "true")
			require.Equal(t, 125, got.code, url)
			require.Contains(t, got.stderr, "this multilock was built without ")
			require.Contains(t, got.stderr, "beside this one under the name multilock-full")
		}
	})

	t.Run("the full build beside it gets everything", func(t *testing.T) {
		t.Parallel()
		pair := small.in(t)
		pair.impostor(pair.beside())
		for _, url := range lacked() {
			got := pair.runWith([]string{"MULTILOCK_PASSWORD=secret"}, "--source", url, "run", "--", "a job", "")
			require.Equal(t, ended{7, "<--source>\n<" + url + ">\n<run>\n<-->\n<a job>\n<>\nsecret\ninput\n", ""}, got)
		}
		for _, command := range []string{"status", "batch", "acquire", "doctor", "history", "wait"} {
			require.Equal(t, 7, pair.runWith([]string{"MULTILOCK_SOURCE=mongodb://h/d.c"}, command).code, command)
		}
	})

	t.Run("it is not needed for locks in a directory", func(t *testing.T) {
		t.Parallel()
		pair := small.in(t)
		pair.impostor(pair.beside())
		require.Equal(t, ended{0, "done\n", ""}, pair.runIt("-d", pair.base, "run", "--", "echo", "done"))
		require.Equal(t, ended{0, "done\n", ""}, pair.runIt("--source", "cook+file://"+pair.base+"?period=5m", "run", "--", "echo", "done"))
	})

	t.Run("it has the source", func(t *testing.T) {
		t.Parallel()
		pair := small.in(t)
		require.NoError(t, os.Symlink(clitest.Binary(), pair.beside()))
		got := pair.runIt("--source", "mongodb://ada@h/d.c", "run", "--", "true")
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, "there is no password for the user ada")
	})

	t.Run("through a link", func(t *testing.T) {
		t.Parallel()
		pair := small.in(t)
		pair.impostor(pair.beside())
		link := filepath.Join(t.TempDir(), "multilock")
		require.NoError(t, os.Symlink(pair.binary, link))
		require.Equal(t, 7, smallBuild{pair.station, link}.runIt("--source", "mongodb://h/d.c", "run", "--", "true").code)
	})

	t.Run("a program in PATH is not asked", func(t *testing.T) {
		t.Parallel()
		alone, dir := small.in(t), t.TempDir()
		alone.impostor(filepath.Join(dir, "multilock-full"))
		found := exec.Command("sh", "-c", "multilock-full </dev/null")
		found.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		require.Error(t, found.Run(), "a shell would find it")
		require.Equal(t, 7, found.ProcessState.ExitCode())
		got := alone.runWith(found.Env, "--source", "mongodb://h/d.c", "run", "--", "true")
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, "built without MongoDB")
	})

	for name, one := range map[string]struct {
		place func(pair smallBuild) error
		want  string // BESIDE is the path of the full build
	}{
		"lacks the source, too":        {func(p smallBuild) error { return os.Link(p.binary, p.beside()) }, "built without MongoDB"},
		"lacks it, too, and is a link": {func(p smallBuild) error { return os.Symlink(p.binary, p.beside()) }, "built without MongoDB"},
		"has no interpreter": {
			func(p smallBuild) error { return os.WriteFile(p.beside(), []byte("#!/no/such/shell\n"), 0o700) }, //nolint:gosec // it is to be run
			"BESIDE, which should have it, cannot be run: no such file",
		},
		"cannot be run":   {func(p smallBuild) error { return os.Mkdir(p.beside(), 0o700) }, "BESIDE, which should have it, cannot be run: permission denied"},
		"is a stranger's": {strangers, "does not hand over to BESIDE: it belongs to user 4711"},
	} {
		t.Run("what is beside it "+name, func(t *testing.T) {
			t.Parallel()
			pair := small.in(t)
			require.NoError(t, one.place(pair))
			got := pair.runIt("--source", "mongodb://h/d.c", "run", "--", "true")
			require.Equal(t, 125, got.code)
			require.Contains(t, got.stderr, strings.ReplaceAll(one.want, "BESIDE", pair.beside()))
		})
	}
}

func strangers(p smallBuild) error {
	if os.Getuid() != 0 {
		p.t.Skip("it takes root to give files away")
	}
	p.impostor(p.beside())
	return os.Chown(p.beside(), 4711, -1)
}
