//go:build unix

package main_test

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What cannot work as it was typed ends with 125 and one line that says why, and
// nothing is created.
func TestBadInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 300)
	cases := []struct {
		args   string // fields; % stands for an empty one
		stderr string
	}{
		{"run", "run: no command; write: multilock run [options] -- COMMAND"},
		{"run --", "run: no command"},
		{"frobnicate", "frobnicate: there is no such command; see multilock --help"},
		{"-n x frobnicate y", "frobnicate: there is no such command"},
		{"--frobnicate", "there is no option --frobnicate; see --help"},
		{"run --frobnicate -- true", "run: there is no option --frobnicate; see --help"},
		{"run -x -- true", "run: there is no option -x; see --help"},
		{"break x --frobnicate", "break: there is no option --frobnicate"},
		{"run --name", "run: --name needs a value"},
		{"run -n a/b -- true", `lock name "a/b": must not contain a slash`},
		{"run -n . -- true", `lock name ".": means a directory`},
		{"run -n .. -- true", `lock name "..": means a directory`},
		{"run -n " + long + " -- true", "is 300 bytes long; at most"},
		{"run -n % -- true", "run: --name is empty"},
		{"run -d % -- true", "run: --dir is empty"},
		{"-d % run -- true", "run: --dir is empty"},
		{"run -g % -- true", "run: --group is empty"},
		{"run --source % -- true", "run: --source is empty"},
		{"status -d %", "status: --dir is empty"},
		{"run -g a/b -- true", `lock group "a/b": must not contain a slash`},
		{"run -g .. -- true", `lock group "..": means a directory`},
		{"run -g .multilock -- true", `lock group ".multilock": is where multilock keeps its own files`},
		{"run -d /nonexistent/dir -- true", `base directory "/nonexistent/dir": does not exist; create it`},
		{"run -d /dev/null -- true", `base directory "/dev/null": is not a directory`},
		{"status -d /nonexistent/dir", `base directory "/nonexistent/dir": does not exist`},
		{"run --source bogus:x -- true", `--source "bogus:x": unknown kind of source; this multilock knows file:DIRECTORY`},
		{"run --source /tmp -- true", `--source "/tmp": unknown kind of source`},
		{"run --source file: -- true", `--source "file:": write file:///absolute/path`},
		{"run --source file://elsewhere/tmp -- true", "write file:///absolute/path"},
		{"run --ttl abc -- true", `run: --ttl: "abc" is no duration`},
		{"run --ttl 5x -- true", `run: --ttl: "5x" is no duration`},
		{"run --ttl 1h2 -- true", `run: --ttl: "1h2" is no duration`},
		{"run --ttl NaN -- true", `run: --ttl: "NaN" is no duration`},
		{"run --ttl inf -- true", `run: --ttl: "inf" is no duration`},
		{"run --ttl=-1s -- true", "run: --ttl: a duration cannot be negative"},
		{"run --ttl -1s -- true", "run: --ttl: a duration cannot be negative"},
		{"run --ttl 0 -- true", "run: --ttl 0: a lock without a time to live could never be taken over"},
		{"run --ttl 1ms -- true", `ttl "1ms": must be at least 100ms`},
		{"run --ttl 9999d -- true", "must be at most"},
		{"run --ttl 9999999999h -- true", "is no duration, or too long a one"},
		{"run --ttl 99999999999999999999 -- true", "is no duration, or too long a one"},
		{"run --wait 1e300 -- true", `run: --wait: "1e300" is no duration, or too long a one`},
		{"run --wait never -- true", `run: --wait: "never" is no duration`},
		{"run --wait -5 -- true", "run: --wait: a duration cannot be negative"},
		{"run --poll 0 -- true", "run: --poll 0: use a small duration"},
		{"run --max-age x -- true", `run: --max-age: "x" is no duration`},
		{"run --min-hold x -- true", `run: --min-hold: "x" is no duration`},
		{"run --max-runtime 0 -- true", "run: --max-runtime 0: leave the option out for no limit"},
		{"run --grace x -- true", `run: --grace: "x" is no duration`},
		{"run --min-hold 1h --max-runtime 1s -- true", "run: --min-hold 1h0m0s is longer than --max-runtime 1s"},
		{"run --on-lost panic -- true", `run: --on-lost "panic": choose term, kill or ignore`},
		{"run -E 256 -- true", "run: -E 256: an exit code is between 0 and 255"},
		{"run -E -1 -- true", "run: -E -1: an exit code is between 0 and 255"},
		{"run -E abc -- true", `run: -E: "abc" is not a number`},
		{"run --fail-after 0 -- true", "run: --fail-after 0: must be at least 1"},
		{"run --fail-after x -- true", `run: --fail-after: "x" is not a number`},
		{"run --fail-after 2 --wait forever -- true", "run: --fail-after and --wait forever contradict each other"},
		{"run --json=maybe -- true", "run: --json: "},
		{"acquire x", `acquire: unexpected "x"; the lock's name is given with -n`},
		{"acquire --detach", "acquire: --detach needs --ttl"},
		{"acquire --detach --ttl 1m --pid 1", "acquire: --detach and --pid contradict each other"},
		{"acquire --pid 0", "acquire: --pid 0: not the number of a process"},
		{"acquire --pid -7", "acquire: --pid -7: not the number of a process"},
		{"acquire --pid abc", `acquire: --pid: "abc" is not a number`},
		{"acquire --pid 999999999", "acquire: --pid 999999999: find process 999999999: no such process"},
		{"acquire -n a/b", `lock name "a/b": must not contain a slash`},
		{"acquire --ttl 1ms", `ttl "1ms": must be at least 100ms`},
		{"release", "release: --token is missing: it is what acquire printed"},
		{"release x --token y", `release: unexpected "x"; the lock's name is given with -n`},
		{"release -n a/b --token y", `lock name "a/b": must not contain a slash`},
		{"break a b", "break: one lock at a time"},
		{"break a -n b", "break: one lock at a time"},
		{"break a/b", `lock name "a/b": must not contain a slash`},
		{"clean x", `clean: unexpected "x": this is for the whole group`},
		{"clean -n x", `clean: unexpected "x": this is for the whole group`},
		{"status a/b", `lock name "a/b": must not contain a slash`},
		{"status --every x", `status: --every: "x" is no duration`},
		{"history --since x", `history: --since: "x" is no duration`},
		{"history --limit 0", "history: --limit 0: must be at least 1"},
		{"history --limit -1", "history: --limit -1: must be at least 1"},
		{"history a/b", `lock name "a/b": must not contain a slash`},
		{"__keep", "this command is for multilock's own use; see: multilock acquire"},
	}
	for _, c := range cases {
		t.Run(c.args[:min(len(c.args), 60)], func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "%", "")
			}
			got := s.run(args...)
			require.Equal(t, 125, got.code, got.stderr)
			require.Empty(t, got.stdout)
			require.True(t, strings.HasPrefix(got.stderr, "multilock: "), got.stderr)
			require.Contains(t, got.stderr, c.stderr)
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
			s.requireUntouched()
		})
	}
}

func TestNamesThatAreNoLocks(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NoError(t, os.Mkdir(filepath.Join(s.base, ".locks"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.base, ".locks", "file"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.base, "group"), nil, 0o600))
	got := s.run("run", "-n", "file", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "is a file, not a lock's directory")
	got = s.run("run", "-g", "group", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, `lock group "group": is not a directory`)

	listed := s.run("status")
	require.Equal(t, 123, listed.code)
	require.Contains(t, listed.stdout, "unknown")
	require.Equal(t, "multilock: cannot tell who holds the lock: file\n", listed.stderr)
}

func TestStrangeNamesAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{" ", "two words", "-n", "--", "...", "*", "grün", "日本", "a\nb", "\x1b[31m", "\xff", strings.Repeat("n", 240)} {
		require.Equal(t, name, s.must("run", "--name="+name, "--", "sh", "-c", `printf %s "$MULTILOCK_NAME"`))
	}
}

// Another user may not write into the base directory, or not even look.
func TestBaseThatIsNotOurs(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to become somebody else")
	}
	nobody, err := user.Lookup("nobody")
	require.NoError(t, err)
	uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
	require.NoError(t, err)
	for mode, want := range map[os.FileMode]string{
		0o755: "permission denied",
		0o700: "may not be opened by this user",
	} {
		s := newStation(t)
		s.base = openToAll(t)
		require.NoError(t, os.Chmod(s.base, mode))
		cmd := s.command("run", "--", "true")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		got := s.finish(cmd)
		require.Equal(t, 125, got.code, got.stderr)
		require.Contains(t, got.stderr, want)
		require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
		s.requireUntouched()
	}
}

// openToAll makes a directory that other users can get to.
func openToAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "multilock-base-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
