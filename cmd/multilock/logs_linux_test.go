package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A job's output can be printed later by its name, and all jobs with output can be listed.
func TestLogsOfAGroup(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, args := range [][]string{nil, {"--failed"}, {"--json"}} {
		got := s.run(append([]string{"logs"}, args...)...)
		require.Equal(t, ended{0, "", got.stderr}, got)
		require.Contains(t, got.stderr, "there are no results in "+s.base+"/.locks; check -d and -g")
	}
	require.Equal(t, ended{0, "", ""}, s.run("logs", "-q"))
	require.Equal(t, 1, s.run("logs", "a").code)
	s.run("batch", "-q", "-j3", "--retries", "1", s.list("a\techo out; echo err >&2; exit 3", "-x\tprintf '\\000\\377'", "silent\ttrue", "3\techo three"))
	require.Regexp(t, `^out\nerr\n=== attempt 2 on \S+ at \S+\nout\nerr\n$`, s.must("logs", "a"))
	require.Equal(t, "\x00\xff", s.must("logs", "--", "-x"))
	got := s.run("logs", "silent")
	require.Equal(t, ended{1, "", got.stderr}, got)
	require.Contains(t, got.stderr, `"silent"`)

	require.Regexp(t, `(?s)^NUMBER +NAME +ATTEMPTS +BYTES.*\n1 +a +2 +16 .*\n2 +-x +1 +2 .*\n4 +3 +1 +6 `, s.must("logs"))
	var listed []string
	for line := range strings.Lines(s.must("logs", "--json")) {
		var job struct {
			Name            string
			Attempts, Bytes int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &job))
		listed = append(listed, fmt.Sprintln(job.Name, job.Attempts, job.Bytes))
	}
	require.Equal(t, []string{"a 2 16\n", "-x 1 2\n", "3 1 6\n"}, listed)
}

// Output on a terminal cannot control the terminal; a program receives it unchanged.
func TestTerminalGetsText(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", s.list("x\tprintf 'a\\tb\\033[2Jc\\nd\\n'"))
	s.must("run", "-n", "e\x1b[2Jvil", "--", "true")
	require.Equal(t, "a\tb\x1b[2Jc\nd\n", s.must("logs", "x"))
	require.Contains(t, s.must("metrics"), "name=\"e\x1b[2Jvil\"")
	for command, want := range map[string]string{"logs x": "b\ufffd[2Jc\r\nd\r\n", "metrics": "name=\"e\ufffd[2Jvil\""} {
		_, shown := onTerminal(t, s.command(strings.Fields(command)...))
		shown.Expect(want)
		got := shown.wait()
		require.Zero(t, got.code)
		require.NotContains(t, got.stdout, "\x1b[2J", command)
	}
}

// Any user may have written a file of frames, and so the host name in it.
func TestHostOfAFrameIsText(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("batch", s.list("x\techo one"))
	frame := "=== multilock 1 \"h\\x1b[2Jh\"\n=== #1 attempt 2 at 2100-01-02T03:04:05Z out 4 \"x\"\ntwo\n\n"
	require.NoError(t, os.WriteFile(s.private("logs", "h.x.0.out"), []byte(frame), 0o600))
	got := s.must("logs", "x")
	require.Contains(t, got, "=== attempt 2 on h\ufffd[2Jh at 2100")
	require.Contains(t, got, "two\n")
}

// --failed shows the output of all failed jobs, with how they failed.
func TestLogsOfTheFailed(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Empty(t, s.must("logs", "--failed"))
	s.run("batch", "-q", "-j2", s.list("a\tprintf oops; exit 3", "b\techo fine", "c\texit 4", "d\techo late; kill -9 $$"))
	require.Regexp(t, `^==> a: failed \(exit 3 on \S+\) <==\noops\n==> c: failed \(exit 4 on \S+\) <==\n==> d: failed \(exit \S+ on \S+\) <==\nlate\n$`, s.must("logs", "--failed"))
	got := s.run("logs", "b", "c", "a")
	require.Equal(t, ended{1, "==> b <==\nfine\n==> a <==\noops", got.stderr}, got)
	require.Contains(t, got.stderr, `"c"`)
	for _, wrong := range [][]string{{"--failed", "a"}, {"--failed", "--follow"}, {"--follow"}, {"-f", "a", "b"}, {"--json", "a"}, {"--json", "--failed"}} {
		require.Equal(t, 125, s.run(append([]string{"logs"}, wrong...)...).code, "%q", wrong)
	}
}

// Many jobs leave few files.
func TestLogsAreInFewFiles(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("echo this is %d", i+1))
	}
	s.must("batch", "-q", "-j4", s.list(lines...))
	files, err := filepath.Glob(filepath.Join(s.base, ".multilock", "groups", ".locks", "logs", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.Equal(t, "this is 123\n", s.must("logs", "123"))
}

// Standard output and standard error are stored separately on request.
func TestSeparateOutput(t *testing.T) {
	t.Parallel()
	s, dir := newStation(t), t.TempDir()
	list := s.list("a%b\techo out; echo err >&2", "c\techo alone >&2; exit 1")
	s.run("batch", "-q", "--separate", list)
	got := s.run("logs", "a%b")
	require.Equal(t, ended{0, "out\n", "err\n"}, got)

	require.Contains(t, s.run("-g", "tree", "batch", "--results", dir, list).stderr, "its output: "+filepath.Join(dir, "c"))
	require.Equal(t, 1, s.run("-g", "again", "batch", "-q", "--results", dir, list).code)
	for file, want := range map[string]string{
		"a%25b/seq": "1\n", "a%25b/stdout": `^out\n=== attempt 1 on \S+ at \S+\nout\n$`, "a%25b/stderr": `^err\n=== .*\nerr\n$`, "c/seq": "2\n", "c/stderr": "^alone\n",
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		require.Regexp(t, want, string(text))
	}
	require.NoFileExists(t, filepath.Join(dir, "c", "stdout"))
	for _, wrong := range [][]string{{"--logs", dir, "--results", dir}, {"--logs", dir, "--separate"}} {
		require.Equal(t, 125, s.run(append(append([]string{"batch"}, wrong...), list)...).code)
	}
}

// --follow prints a job's output while it runs, and its end.
func TestFollowedJob(t *testing.T) {
	t.Parallel()
	s, gate := newStation(t), filepath.Join(t.TempDir(), "gate")
	batch := s.start("batch", "-q", "--retries", "1", s.list("a\techo first; while [ ! -e "+gate+" ]; do sleep 0.05; done; echo last; exit 5", "b\techo other"))
	require.Eventually(t, func() bool { return strings.Contains(s.run("logs", "a").stdout, "first\n") }, time.Minute, 50*time.Millisecond, "before it has ended")
	follower := s.start("logs", "--follow", "a")
	follower.Expect("first\n")
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	require.Equal(t, 1, batch.end().code)
	got := follower.end()
	require.Zero(t, got.code, got.stderr)
	require.Regexp(t, `^first\nlast\n=== attempt 2 on \S+ at \S+\nfirst\nlast\n$`, got.stdout)
	require.Equal(t, got, s.run("logs", "-f", "a"), "it has ended")
}

// The job log of a group is made from the results of all hosts.
func TestJoblogOfAGroup(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.run("batch", "-q", "-j2", s.list("a\ttrue", "b\texit 3", "with space\tkill -9 $$"))
	s.run("run", "-q", "-n", "single", "--once", "--", "false")
	lines := strings.Split(strings.TrimSpace(s.must("logs", "--joblog")), "\n")
	require.Equal(t, "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand", lines[0])
	var got []string
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		require.Len(t, f, 9)
		got = append(got, fmt.Sprint(f[0], " ", f[6], " ", f[7], " ", f[8]))
	}
	require.ElementsMatch(t, []string{"1 0 0 true", "2 3 0 exit 3", "3 0 9 kill -9 $$", "0 1 0 false"}, got)
	require.Equal(t, 125, s.run("logs", "--joblog", "a").code)
}

// If a batch has stored output elsewhere, the directory and its host are named.
func TestLogsNameTheDirectoryOfABatch(t *testing.T) {
	t.Parallel()
	s, there := newStation(t), filepath.Join(t.TempDir(), "out put")
	for _, how := range []string{"--results", "--logs", "--results"} {
		require.Zero(t, s.run("batch", "-q", "-g", how, how, there, s.list("a\techo x")).code)
		got := s.run("logs", "-g", how, "a")
		require.Equal(t, 1, got.code)
		require.Regexp(t, `The jobs of a batch printed into [^ ]+:`+regexp.QuoteMeta(there)+"\n$", got.stderr)
	}
	require.NotContains(t, s.run("logs", "-g", "other", "a").stderr, there)
}
