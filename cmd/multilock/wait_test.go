//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// The output of a plain wait about ended jobs, as in the README.

// One of several jobs fails: the next step does not start, with results and without.
func TestWaitStopsAtAFailure(t *testing.T) {
	t.Parallel()
	for _, options := range []string{"", "--once", "--once --retries 1"} {
		t.Run("run "+options, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			got := s.script("sh", fmt.Sprintf(`
				for i in 1 2 3; do
					multilock run %s -n job$i -- sh -c "echo >>begun; until test -e go; do sleep 0.05; done; exit $((i == 2 ? 3 : 0))" &
				done
				until test -e begun && test "$(wc -l <begun)" -eq 3; do sleep 0.05; done
				{ sleep 0.5; touch go; } &
				multilock wait && echo next-step
				echo "code $?"`, options))
			require.Equal(t, "code 1\n", got.stdout)
			require.Regexp(t, `multilock: job "job2" failed with exit code 3 on \S+ at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d`, got.stderr)
			require.NotContains(t, got.stderr, `job "job1"`)
			view := s.waitJSON()
			require.True(t, view.Open)
			require.False(t, view.OK)
			require.Equal(t, 1, view.Failed)
			require.Equal(t, "job2", view.Failures[0].Name)
			require.Equal(t, 3, view.Failures[0].Exit)
		})
	}
}

// Events before --since do not count, by the times in the history.
func TestWaitSince(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "x", "--", "true")
	file := s.historyFile()
	line := `{"time":"%s","event":"released","name":"old","token":"t","by":{"host":"node7","pid":7},"held_ns":1000000000,"exit":3}` + "\n"
	content := fmt.Sprintf(line, minutesAgo(10))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	got := s.run("wait")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `job "old" failed with exit code 3 on node7 at `)
	require.Equal(t, 1, s.run("wait", "--since", "11m").code)
	require.Equal(t, ended{}, s.run("wait", "--since", "9m"))
}

// With --slots any job may run in a slot, so a job is identified by its command.
func TestWaitAfterSlots(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	flag := filepath.Join(t.TempDir(), "flag")
	scene7 := []string{"run", "-n", "render", "--slots", "1", "--", "test", "-e", flag}
	require.Equal(t, 1, s.run(scene7...).code)
	s.must("run", "-n", "render", "--slots", "1", "--", "echo", "scene8")
	require.Equal(t, 1, s.run("wait").code, "another job in that slot clears nothing")
	require.NoError(t, os.WriteFile(flag, nil, 0o600))
	holder := s.hold("render", "--slots", "2")
	s.must("run", "-n", "render", "--slots", "2", "--", "test", "-e", flag)
	require.Zero(t, holder.end().code)
	got := s.run("wait")
	require.Zero(t, got.code, got.stderr)
}

// Unreadable history is reported, and the rest counts.
func TestWaitWithoutAHistory(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "x", "--", "true")
	dir := filepath.Dir(s.historyFile())
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600)) // a file cannot be read as a directory
	got := s.run("wait")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "warning: how the jobs ended is not known, only that no lock is held now")
}

// historyFile returns the only file of the group's history.
func (s *station) historyFile() string {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.base, ".multilock", "groups", ".locks", "history", "*.jsonl"))
	require.NoError(s.t, err)
	require.Len(s.t, files, 1)
	return files[0]
}

func minutesAgo(n int) string {
	return time.Now().Add(-time.Duration(n) * time.Minute).UTC().Format(time.RFC3339Nano)
}

// waitView is the part of "wait --json" that the tests read.
type waitView struct {
	Open, OK                       bool
	Done, Failed, Unfinished, Exit int
	Failures                       []struct {
		Name, Host, Why string
		Exit, Attempt   int
	}
	Dead, Held     []clitest.Lock
	UnfinishedJobs []string `json:"unfinished_jobs"`
	Error          string
}

// waitJSON runs "wait" until it ends.
func (s *station) waitJSON(args ...string) waitView {
	s.t.Helper()
	got := s.run(append([]string{"wait", "--json", "--poll", "50ms"}, args...)...)
	var view waitView
	require.NoError(s.t, json.Unmarshal([]byte(got.stdout), &view), got.stderr)
	require.Equal(s.t, got.code, view.Exit)
	return view
}

func TestWaitPassesIfNothingIsHeld(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "--", "true")
	require.Equal(t, ended{}, s.run("wait", "--settle", "0"))
	require.Equal(t, ended{}, s.run("wait"))
}

// If nothing was ever started in a group, a barrier there must not open.
func TestWaitForAGroupThatNeverWas(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-g", "stage1", "--", "true")
	got := s.run("wait", "-g", "stage2", "--settle", "0")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "multilock: wait: "+s.base+"/stage2 has never been used, so there was nothing to wait for")
	view := s.waitJSON("-g", "stage2", "--settle", "0")
	require.Equal(t, 125, view.Exit)
	require.False(t, view.OK || view.Open)
	require.Equal(t, ended{}, s.run("wait", "-g", "stage2", "--settle", "0", "--allow-empty"))
	require.Equal(t, ended{}, s.run("wait", "-g", "stage1", "--settle", "0"))
	require.Equal(t, 124, s.run("wait", "-g", "stage2", "--members", "a", "--timeout", "50ms").code)
	require.Equal(t, 125, s.run("wait", "-g", "stage2", "--members", "a", "--allow-empty").code)

	token := s.acquire(s.owner(), "x", "-g", "stage3").Token
	s.must("release", "x", "-g", "stage3", "--token", token)
	require.Equal(t, ended{}, s.run("wait", "-g", "stage3", "--settle", "0"))
}

// The example of README and of "wait --help", with an ssh that takes longer than a barrier's check.
func TestBarrierAndSlowSSH(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	const script = `
		day=2026-01-01
		start() { until [ -e "$MULTILOCK_DIR/waiting" ]; do sleep 0.05; done; sleep 1.5; "$@"; }
		for i in 1 2 3; do start multilock -g $day run -n job$i --once -- sh -c "echo $i >>$MULTILOCK_DIR/done" & done
		touch $MULTILOCK_DIR/waiting
		multilock -g $day wait --members job1,job2,job3 --timeout 60s && wc -l <$MULTILOCK_DIR/done
		wait`
	got := s.script("sh", script)
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, "3", strings.TrimSpace(got.stdout), got.stderr)
}

func TestWaitForMembersThatHaveNotBegun(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	waiting := s.start("wait", "--members", "a,b", "--members", "c", "--poll", "50ms", "-v")
	for _, name := range []string{"a", "b", "c"} {
		s.must("run", "--once", "-n", name, "--", "true")
	}
	got := waiting.wait()
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "nothing is left to wait for")
	require.Equal(t, 3, s.waitJSON("--members", "a,b,c").Done, "what is done stays done")
}

func TestWaitForANumber(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	waiting := s.start("wait", "--expect", "2", "--poll", "50ms", "-q")
	s.must("run", "--once", "-n", "a", "--", "true")
	late := s.hold("late", "--once")
	require.Zero(t, late.end().code)
	require.Equal(t, ended{}, waiting.wait())
	got := s.run("wait", "--expect", "3", "--timeout", "200ms")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "1 result missing")
}

// Names come from a list, or from the lines of a batch.
func TestWaitForMembersOfAFile(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, name := range []string{"a", "with space", "b"} {
		s.must("run", "--once", "-n", name, "--", "true")
	}
	list := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(list, []byte("# jobs\na\n\nwith space\techo some # command\tx\r\nb\r\n"), 0o600))
	require.Equal(t, 3, s.waitJSON("--members-from", list).Done)
	cmd := s.command("wait", "--members-from", "-", "--members", "a", "--timeout", "200ms", "--poll", "50ms")
	cmd.Stdin = strings.NewReader("b\nmissing\n")
	got := s.finish(cmd)
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, "1 job without a final result: missing")
}

// After the timeout it reports the holders.
func TestWaitSaysWhoHolds(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("a", "--once")
	got := s.run("wait", "--timeout", "300ms")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, `lock "a" is held: `)
	require.Contains(t, got.stderr, "timed out waiting")
	view := s.waitJSON("--members", "a,b", "--timeout", "300ms")
	require.False(t, view.Open)
	require.Equal(t, []string{"a", "b"}, view.UnfinishedJobs)
	require.Len(t, view.Held, 1)
	require.Equal(t, "held", s.lock("a").State, "waiting changes nothing")
	require.Zero(t, job.end().code)
}

func TestSignalEndsAWait(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		s := newStation(t)
		s.hold("a")
		waiting := s.start("wait", "--poll", "1h")
		waiting.Err.Expect(t, "waiting")
		waiting.Signal(sig)
		require.Equal(t, 128+int(sig), waiting.wait().code)
	}
}

// A dead job is not done: its host detects that immediately, with evidence, and the barrier fails.
func TestWaitFindsTheDead(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.dead("a")
	view := s.waitJSON()
	require.Equal(t, 1, view.Exit)
	require.Len(t, view.Dead, 1)
	require.Equal(t, "a", view.Dead[0].Name)
	require.Regexp(t, "no longer exists|has ended", view.Dead[0].Why)
	require.Equal(t, []string{"acquired", "broken"}, happened(s.history("a")))
	s.dead("b")
	got := s.run("wait")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, `job "b" died, run by `)
}

// wait immediately reports a job whose host died, and ends if no other host takes the job over.
func TestWaitForAJobWhoseHostDied(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.dead("a")
	waiting := s.start("wait", "--members", "a", "--wait-for-takeover", "2s")
	waiting.Err.Expect(t, `job "a" died, run by `)
	got := waiting.wait()
	require.Equal(t, 1, got.code)
	require.Equal(t, 125, s.run("wait", "--wait-for-takeover", "2s").code)

	s.dead("b")
	waiting = s.start("wait", "--members", "b", "--wait-for-takeover", "forever", "--poll", "50ms")
	waiting.Err.Expect(t, "; waiting for another host to take it over")
	s.must("run", "-q", "-n", "b", "--once", "--", "true")
	require.Zero(t, waiting.wait().code)
}
