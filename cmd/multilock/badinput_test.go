//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An invalid command line ends with 125 and one line that explains the problem, and nothing is created.
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
		{"rnu -- true", `rnu: there is no such command; did you mean "run"? See multilock --help`},
		{"histroy", `did you mean "history"?`},
		{"help lokcs", `there is no command and no topic "lokcs"; did you mean "locks"?`},
		{"help nonsense", "the topics are environment, exit-codes, filesystems, "},
		{"run --wiat 3s -- true", "run: there is no option --wiat; did you mean --wait? See --help"},
		{"--sorce x status", "there is no option --sorce; did you mean --source? See --help"},
		{"x", "x: there is no such command; see multilock --help"},
		{"--frobnicate", "there is no option --frobnicate; see --help"},
		{"run --frobnicate -- true", "run: there is no option --frobnicate; see --help"},
		{"run -x -- true", "run: there is no option -x; see --help"},
		{"break x --frobnicate", "break: there is no option --frobnicate"},
		{"run --name", "run: --name needs a value"},
		{"run -n a/b -- true", `lock name "a/b": must not contain a slash`},
		{"run -n . -- true", `lock name ".": means a directory`},
		{"run -n " + long + " -- true", "is 300 bytes long; at most"},
		{"run -n % -- true", "run: -n is empty"},
		{"run -d % -- true", "run: -d is empty"},
		{"-d % run -- true", "run: -d is empty"},
		{"run -g % -- true", "run: -g is empty"},
		{"run --source % -- true", "run: --source is empty"},
		{"status -d %", "status: -d is empty"},
		{"run -g a/b -- true", `lock group "a/b": must not contain a slash`},
		{"run -g .multilock -- true", `lock group ".multilock": is where multilock keeps its own files`},
		{"run -d /nonexistent/dir -- true", `base directory "/nonexistent/dir": does not exist; create it`},
		{"run -d /dev/null -- true", `base directory "/dev/null": is not a directory`},
		{"status -d /nonexistent/dir", `base directory "/nonexistent/dir": does not exist`},
		{"run --source bogus:x -- true", `--source "bogus:x": unknown kind of source; this multilock knows file:DIRECTORY`},
		{"run --source /tmp -- true", `--source "/tmp": unknown kind of source`},
		{"run --source file: -- true", `--source "file:": write file:///absolute/path`},
		{"run --source file://elsewhere/tmp -- true", "write file:///absolute/path"},
		{"run --ttl abc -- true", `run: --ttl: invalid duration "abc"`},
		{"run --ttl -1s -- true", "run: --ttl: a duration cannot be negative"},
		{"run --ttl 0 -- true", "run: --ttl 0: a lock without a TTL could never be taken over"},
		{"run --ttl 1ms -- true", `ttl "1ms": must be at least 100ms`},
		{"run --ttl 9999d -- true", "must be at most"},
		{"run --wait never -- true", `run: --wait: invalid duration "never"`},
		{"run --poll 0 -- true", "run: --poll 0: use a small duration"},
		{"run --max-runtime 0 -- true", "run: --max-runtime 0: leave the option out for no limit"},
		{"run --min-hold 1h --max-runtime 1s -- true", "run: --min-hold 1h0m0s is longer than --max-runtime 1s"},
		{"run --on-lost panic -- true", `run: --if-lost: "panic": choose term, kill or ignore`},
		{"run -E 256 -- true", "run: -E 256: choose a number from 0 to 255"},
		{"run -E -1 -- true", "run: -E -1: choose a number from 0 to 255"},
		{"run -E abc -- true", `run: -E: "abc" is not a number`},
		{"run --fail-after 0 -- true", "run: --fail-after 0: must be at least 1"},
		{"run --json=maybe -- true", "run: --json: "},
		{"acquire x y", `acquire: one lock at a time; a command is run with: multilock run -n NAME -- COMMAND`},
		{"acquire x -n y", `acquire: one lock at a time`},
		{"acquire --pid 0", "acquire: --pid 0: must be at least 1"},
		{"acquire --pid 999999999", "acquire: --pid 999999999: find process 999999999: no such process"},
		{"release x y --token z", `release: one lock at a time; each has a token of its own`},
		{"release % --token z", `lock name "": `},
		{"acquire %", `lock name "": `},
		{"break a b", "break: one lock at a time"},
		{"break a -n b", "break: one lock at a time"},
		{"status a/b", `lock name "a/b": must not contain a slash`},
		{"history --since x", `history: --since: "x" is no time; write 2h or 7d ago`},
		{"history --limit 0", "history: --limit 0: must be at least 1"},
		{"history a/b", `lock name "a/b": must not contain a slash`},
		{"run --slots 0 -- true", "run: --slots 0: choose a number from 1 to 1000"},
		{"run --slots 100000 -- true", "run: --slots 100000: choose a number from 1 to 1000"},
		{"run --once --retries -1 -- true", "run: --retries -1: must not be negative"},
		{"run --every 10ms -- true", "run: --every: the span 10ms is shorter than 1s"},
		{"run --every 1h@90m -- true", "run: --every: the phase 90m is not shorter than the span 1h"},
		{"run --every 1d@07:30[Mars/Olympus] -- true", `run: --every: this host does not know the time zone "Mars/Olympus": correct the name, or install the package tzdata here`},
		{"run --every soon -- true", `run: --every: invalid duration "soon"`},
		{"clean --results a/b", `lock name "a/b": must not contain a slash`},
		{"status --results a/b", `lock name "a/b": must not contain a slash`},
		{"wait a", `wait: unexpected "a": it waits for the whole group`},
		{"wait --expect 0", "wait: --expect 0: must be at least 1"},
		{"wait --members %", "wait: --members and --members-from name no member"},
		{"wait --members-from /dev/null", "wait: --members and --members-from name no member"},
		{"wait --members-from /nonexistent", "read the names of the jobs: open /nonexistent"},
		{"wait --members a/b", `lock name "a/b": must not contain a slash`},
		{"status --every 5s", "status: --interval needs --watch: it is the time between two looks"},
		{"doctor -n x", "doctor: unexpected -n NAME: it examines the source as a whole"},
		{"wait --poll 0", "wait: --poll 0: use a small duration"},
		{"wait --since 0", "wait: --since 0: use a small duration"},
		{"report page.html", "write to a file with -o FILE"},
		{"report -o %", "report: -o is empty"},
		{"batch", "batch: name one file with the jobs"},
		{"batch a b", "batch: name one file with the jobs"},
		{"batch /nonexistent", "read the list of jobs: open /nonexistent: no such file or directory"},
		{"batch -j0 x", "batch: -j 0: must be at least 1"},
		{"batch -j x y", `batch: -j: "x" is not a number`},
		{"batch --retries=-1 x", "batch: --retries -1: must not be negative"},
		{"batch --timeout 0 x", "batch: --max-runtime 0: leave the option out"},
		{"batch --halt soon x", "batch: --halt: write never, or soon or now"},
		{"batch --halt soon,fail=0 x", "batch: --halt: write never"},
		{"batch --halt now,fail=101% x", "batch: --halt: write never"},
		{"batch --halt later,fail=1 x", "batch: --halt: write never"},
		{"__keep", "this command is for multilock's own use; see: multilock acquire"},
	}
	for _, c := range cases {
		t.Run(c.args[:min(len(c.args), 60)], func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			args := strings.Fields(c.args)
			for i, arg := range args {
				args[i] = strings.TrimPrefix(arg, "%")
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
	require.Contains(t, got.stderr, `lock group "`+s.base+`/group": is not a directory`)
	require.Contains(t, got.stderr, "choose another group, or move away what is there")

	listed := s.run("status")
	require.Equal(t, 123, listed.code)
	require.Contains(t, listed.stdout, "unknown")
	require.Equal(t, "multilock: the lock's holder is not known: file\n", listed.stderr)
}

func TestStrangeNamesAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"two words", "-n", "--", "...", "*", "grün", "日本", "a\nb", "x\x1b[31m", "\xff", strings.Repeat("n", 240)} {
		require.Equal(t, name, s.must("run", "--name="+name, "--", "sh", "-c", `printf %s "$MULTILOCK_NAME"`))
	}
}

// A name that ends with an invisible character is not the intended lock. All commands reject it, but a lock
// of that name that another implementation holds is listed.
func TestInvisibleEndsOfNames(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, bad := range []string{"nightly\r", " nightly"} {
		list := s.list(bad + "\ttrue")
		for _, words := range [][]string{
			{"run", "-n", bad, "--", "true"}, {"run", "-g", bad, "--", "true"}, {"acquire", bad}, {"release", bad, "--token", "t"}, {"break", bad}, {"status", bad},
			{"history", bad}, {"logs", bad}, {"overdue", bad}, {"clean", "--results", bad}, {"wait", "--members", bad}, {"batch", list},
		} {
			got := s.run(words...)
			require.Contains(t, []int{125, 3}, got.code, "%q: %s", words, got.stderr)
			why := "begins or ends with the invisible character"
			if words[0] == "batch" && strings.Contains(bad, "\r") {
				why = "there is a carriage return (CR) within it" // of the line
			}
			require.Contains(t, got.stdout+got.stderr, why, "%q", words)
		}
		withGroup := &station{t: t, base: s.base, env: []string{"MULTILOCK_GROUP=" + bad}}
		require.Contains(t, withGroup.run("status").stderr, "lock group ")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(s.base, ".locks"), 0o700))
	s.peer("nightly ", 0)
	require.Equal(t, "nightly ", s.locks()[0].Name)
}

// openToAll returns a directory that other users can access.
func openToAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "multilock-base-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
