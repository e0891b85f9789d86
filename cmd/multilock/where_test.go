//go:build unix

package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// Without a directory, no command uses the current directory.
func TestNoPlaceIsNoPlace(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, words := range [][]string{
		{"run", "--", "true"}, {"run", "-n", "x", "true"}, {"batch", "jobs"}, {"wait"}, {"status"}, {"acquire", "x"}, {"release", "x", "--token", "t"},
		{"break", "x"}, {"clean"}, {"history"}, {"logs"}, {"report"}, {"doctor"},
	} {
		cmd := s.command(words...)
		cmd.Env, cmd.Dir = clitest.Environ(), s.base
		got := s.finish(cmd)
		require.Equal(t, 125, got.code, "%v", words)
		require.Empty(t, got.stdout)
		require.Equal(t, "multilock: "+words[0]+": no lock directory: give -d DIRECTORY, which all hosts share (-d . for this one), "+
			"or set MULTILOCK_DIR; see: multilock help locks\n", got.stderr)
	}
	s.requireUntouched()
	for _, words := range [][]string{{"run", "-d", ".", "--", "true"}, {"-d.", "status"}, {"status", "--source", "file:."}} {
		cmd := s.command(words...)
		cmd.Env, cmd.Dir = clitest.Environ(), s.base
		require.Zero(t, s.finish(cmd).code, "%v", words)
	}
}

// The first lock in a directory that no other host sees causes one warning.
func TestOneHostIsToldOnce(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it is not known elsewhere which filesystems other hosts see")
	}
	const told = "is on a local filesystem ("
	probe := newStation(t)
	probe.env = []string{"MULTILOCK_LOCAL="}
	first := probe.run("run", "--", "true")
	if first.stderr == "" {
		t.Skip("other hosts may see the directory for temporary files here")
	}
	require.Equal(t, 0, first.code)
	require.Contains(t, first.stderr, "multilock: warning: "+probe.base+" "+told)
	require.Equal(t, ended{0, "", ""}, probe.run("run", "--", "true"))
	require.Equal(t, ended{0, "", ""}, probe.run("run", "-n", "other", "-g", "other", "--", "true"))

	for name, words := range map[string][]string{
		"quiet": {"run", "-q", "--", "true"}, "quiet script": {"acquire", "-q", "x"}, "JSON": {"run", "--json", "--", "true"}, "looking": {"status"},
	} {
		s := newStation(t)
		s.env = []string{"MULTILOCK_LOCAL=0"}
		require.NotContains(t, s.run(words...).stderr, told, name)
		require.Contains(t, s.run("run", "--", "true").stderr, told, "%s: nobody was told before", name)
	}
	for name, words := range map[string][]string{
		"batch": {"batch", "/dev/null"}, "wait": {"wait", "--settle", "0", "--allow-empty"}, "acquire": {"acquire", "x"}, "detached": {"acquire", "x", "--detach", "--ttl", "1m"},
	} {
		s := newStation(t)
		s.env = []string{"MULTILOCK_LOCAL=0"}
		require.Contains(t, s.run(words...).stderr, told, name)
		s = newStation(t)
		require.NotContains(t, s.run(words...).stderr, told, "%s, meant so", name)
	}
	s := newStation(t)
	s.env = []string{"MULTILOCK_LOCAL=perhaps"}
	require.Equal(t, ended{125, "", "multilock: run: MULTILOCK_LOCAL=\"perhaps\": write 1 or 0\n"}, s.run("run", "--", "true"))
}

// A directory without its mark may be a mount point without the share.
func TestRequireShared(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	refused := s.run("run", "-q", "-E", "0", "--require-shared", "--", "echo", "ran")
	require.Equal(t, 125, refused.code)
	require.Empty(t, refused.stdout)
	require.Contains(t, refused.stderr, "has no file .multilock/shared, which --require-shared requires")
	require.Contains(t, refused.stderr, "run once: multilock -d "+s.base+" doctor --mark")
	s.env = []string{"MULTILOCK_REQUIRE_SHARED=1"}
	for _, words := range [][]string{{"status"}, {"acquire", "x"}, {"batch", "/dev/null"}, {"doctor", "-q"}} {
		require.Equal(t, 125, s.run(words...).code, "%v", words)
	}
	s.requireUntouched()
	require.Zero(t, s.run("run", "--require-shared=false", "--", "true").code)

	home := t.TempDir()
	writeConfig(t, home, "dir = \""+s.base+"\"\nrequire_shared = true\n")
	require.Contains(t, s.configured(home, nil, "status").stderr, "--require-shared requires")
	require.Zero(t, s.configured(home, []string{"MULTILOCK_REQUIRE_SHARED=0"}, "status").code)

	marked := s.run("doctor", "--mark")
	require.Contains(t, []int{0, 1}, marked.code, marked.stdout)
	require.Contains(t, clitest.OneLine(marked.stdout), filepath.Join(s.base, ".multilock", "shared")+" marks this directory as shared")
	require.Equal(t, "ran\n", s.must("run", "--", "echo", "ran"))
	require.Zero(t, s.configured(home, nil, "status").code)
	require.Equal(t, ended{125, "", "multilock: run: MULTILOCK_REQUIRE_SHARED=\"yes please\": write 1 or 0\n"},
		(&station{t: t, base: s.base, env: []string{"MULTILOCK_REQUIRE_SHARED=yes please"}}).run("run", "--", "true"))
}

// A job that changes its directory finds the same locks through its environment.
func TestRelativePlacesAreAbsoluteForTheJob(t *testing.T) {
	t.Parallel()
	for variable, value := range map[string]string{"MULTILOCK_DIR": "locks", "MULTILOCK_SOURCE": "file:locks", "MULTILOCK_CONFIG": "config"} {
		s := newStation(t)
		work := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(work, "elsewhere", "locks"), 0o700))
		require.NoError(t, os.Mkdir(filepath.Join(work, "locks"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(work, "config"), []byte("dir = \""+filepath.Join(work, "locks")+"\"\n"), 0o600))
		cmd := s.command("run", "-n", "x", "--", "sh", "-c", "cd elsewhere && multilock run -n x -- echo ran")
		cmd.Dir, cmd.Env = work, append(clitest.Environ(), variable+"="+value)
		got := s.finish(cmd)
		require.Equal(t, 121, got.code, "%s: %s", variable, got.stderr)
		require.Empty(t, got.stdout)
	}
}

// A program that reads the JSON may run in another directory.
func TestBaseIsAbsolute(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	list := s.list("a\ttrue")
	for _, args := range []string{"batch " + list, "status", "status --all", "wait", "run -q -n x --every 1d -- true", "overdue", "report", "doctor"} {
		cmd := s.command(append([]string{"-d", filepath.Base(s.base), "--json"}, strings.Fields(args)...)...)
		cmd.Dir = filepath.Dir(s.base)
		got := s.finish(cmd)
		if strings.HasPrefix(args, "run") {
			require.Zero(t, got.code, got.stderr)
			continue
		}
		var report struct{ Base string }
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), "%s: %s", args, got.stderr)
		require.True(t, filepath.IsAbs(report.Base), "%s: %s", args, report.Base)
		require.Equal(t, filepath.Base(s.base), filepath.Base(report.Base), args)
	}
}
