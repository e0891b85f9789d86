package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The sources that can do what a directory can.
var sources = map[string]func(*testing.T) *station{
	"cloudshell": func(t *testing.T) *station { s, _ := cloudshellStation(t); return s },
	"mongodb":    func(t *testing.T) *station { s, _ := mongoStation(t); return s },
}

// TestCommands tries each command with each source. What one of them does with a
// lock has no other name than what another does: all share one server.
func TestCommands(t *testing.T) {
	t.Parallel()
	for name, open := range sources {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			for name, test := range map[string]func(*station){
				"run": testRun, "wait for it": testWaiting, "acquire": testAcquire, "dead process": testDeadProcess, "crashed host": testCrashedHost,
				"batch": testBatch, "once": testOnce, "every": testEvery, "slots": testSlots, "barrier": testBarrier, "doctor": testDoctor, "help in need": testClearing,
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					test(&station{t, append(slices.Clip(s.vars), "MULTILOCK_GROUP="+strings.ReplaceAll(name, " ", "-")), s.secrets})
				})
			}
		})
	}
}

// Of two one runs, and the other is told of whom it is in the way.
func testRun(s *station) {
	holder := s.hold("-n", "x")
	got := s.run("run", "-n", "x", "--", "echo", "not to be seen")
	require.Equal(s, 121, got.code, got.stderr)
	require.Empty(s, got.stdout)
	require.Contains(s, got.stderr, fmt.Sprintf(" pid %d ", holder.PID()))
	require.Contains(s, got.stderr, "sh -c 'echo ready; exec cat'")
	require.Equal(s, ended{7, "", ""}, s.run("run", "-n", "x", "-q", "-E", "7", "--", "true"))
	require.Equal(s, ended{0, "ready\n", ""}, holder.end())
	got = s.run("run", "-n", "x", "--json", "--", "sh", "-c", "exit 3")
	require.Equal(s, 3, got.code)
	var report struct {
		JobExit int  `json:"job_exit"`
		Ran     bool `json:"ran"`
		Fence   uint64
	}
	require.NoError(s, json.Unmarshal([]byte(got.stderr), &report), got.stderr)
	require.Equal(s, 3, report.JobExit)
	require.True(s, report.Ran)
	require.Positive(s, report.Fence)
}

func testWaiting(s *station) {
	holder := s.hold("-n", "x")
	require.Equal(s, 124, s.run("run", "-n", "x", "--wait", "300ms", "--", "true").code)
	waiter := s.begin(s.command("run", "-n", "x", "--wait", "forever", "--", "echo", "my turn"))
	waiter.ExpectNotice()
	require.Zero(s, holder.end().code)
	got := waiter.wait()
	require.Zero(s, got.code, got.stderr)
	require.Equal(s, "my turn\n", got.stdout)
}

// The job of acquire's lock is a shell; another command gives it back.
func testAcquire(s *station) {
	shell := s.holding(s.shell(`token=$(multilock acquire -n x) || exit; echo ready $token; cat`))
	token := strings.Fields(shell.Out.String())[1]
	held := s.lock("x")
	require.Equal(s, "held", held.State, held.Why)
	require.Equal(s, token, held.Token)
	require.Equal(s, 122, s.run("release", "-n", "x", "--token", "another").code)
	s.must("release", "-n", "x", "--token", token)
	require.Equal(s, "free", s.lock("x").State)
	require.Zero(s, shell.end().code)

	s.must("acquire", "-n", "y", "--detach", "--ttl", "1h")
	require.Equal(s, "held", s.lock("y").State)
	require.Contains(s, s.must("status"), "y")
	require.Equal(s, 121, s.run("break", "y").code)
	require.Contains(s, s.must("break", "y", "--force"), `broke lock "y"`)
	require.Equal(s, "free", s.lock("y").State)
}

// The lock of a holder that was killed can be broken, but not while its job may still
// live: that is known at once where the source keeps a mark of the job, and after the
// TTL where it does not.
func testDeadProcess(s *station) {
	s.hold("-n", "x", "--ttl", "2s").Kill()
	var got ended
	s.eventually("the lock is broken", func() bool { got = s.run("break", "x"); return got.code == 0 })
	require.Contains(s, got.stdout, `broke lock "x"`)
	s.must("run", "-n", "x", "--", "true")
}

// From another host a crash is known by its silence: one that is in a pid namespace
// of its own cannot be judged by its process.
func testCrashedHost(s *station) {
	if _, err := exec.LookPath("unshare"); err != nil || os.Getuid() != 0 {
		s.Skip("needs root and unshare(1) to make another host")
	}
	cmd := s.command("run", "-n", "x", "--ttl", "2s", "--", "sh", "-c", "echo ready; exec cat")
	unshare, err := exec.LookPath("unshare")
	require.NoError(s, err)
	cmd.Args = append([]string{"unshare", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", `hostname h2 && exec "$0" "$@"`}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
	cmd.Path = unshare
	other := s.holding(cmd)
	require.Equal(s, "h2", s.lock("x").Host)
	require.Equal(s, 121, s.run("break", "x").code)
	other.Kill()
	got := s.run("run", "-n", "x", "--wait", "forever", "-q", "--", "echo", "mine")
	require.Equal(s, ended{0, "mine\n", ""}, got)
}

// Two that are given the same list run each of its jobs once.
func testBatch(s *station) {
	log := filepath.Join(s.TempDir(), "ran")
	var lines []string
	for i := range 12 {
		lines = append(lines, fmt.Sprintf("job%d\techo %d >> %s", i, i, log))
	}
	list := s.write(strings.Join(lines, "\n"))
	hosts := []*running{s.begin(s.command("batch", "-j2", list)), s.begin(s.command("batch", "-j2", list))}
	for _, host := range hosts {
		got := host.wait()
		require.Zero(s, got.code, got.stderr)
	}
	content, err := os.ReadFile(log)
	require.NoError(s, err)
	ran := strings.Fields(string(content))
	slices.Sort(ran)
	require.Len(s, slices.Compact(slices.Clone(ran)), 12)
	require.Len(s, ran, 12)
	s.must("batch", list)
	after, err := os.ReadFile(log)
	require.NoError(s, err)
	require.Equal(s, content, after, "what is done is done")
}

func testOnce(s *station) {
	require.Equal(s, "ran\n", s.must("run", "-n", "x", "--once", "--", "echo", "ran"))
	got := s.run("run", "-n", "x", "--once", "--", "echo", "again")
	require.Zero(s, got.code)
	require.Empty(s, got.stdout)
	require.Contains(s, got.stderr, `job "x" already ran: success on`)
	require.Equal(s, 3, s.run("run", "-n", "bad", "--once", "--retries", "1", "--", "sh", "-c", "exit 3").code)
	require.Equal(s, 3, s.run("run", "-n", "bad", "--once", "--", "true").code)
	require.Contains(s, s.must("status"), "1 done, 1 failed")
	s.must("clean", "--results", "bad")
	s.must("run", "-n", "bad", "--once", "--", "true")
	require.Contains(s, s.must("report", "-o", filepath.Join(s.TempDir(), "page.html")), "2 jobs, 2 done")
}

func testEvery(s *station) {
	require.Equal(s, "ran\n", s.must("run", "-n", "x", "--every", "8760h", "--", "echo", "ran"))
	require.Empty(s, s.must("run", "-n", "x", "--every", "8760h", "--", "echo", "again"))
}

func testSlots(s *station) {
	first := s.hold("-n", "x", "--slots", "2")
	second := s.hold("-n", "x", "--slots", "2")
	require.Equal(s, 121, s.run("run", "-n", "x", "--slots", "2", "--", "true").code)
	require.Zero(s, first.end().code)
	require.Contains(s, []string{"1\n", "2\n"}, s.must("run", "-n", "x", "--slots", "2", "--", "sh", "-c", "echo $MULTILOCK_SLOT"))
	require.Zero(s, second.end().code)
}

func testBarrier(s *station) {
	holder := s.hold("-n", "x", "--once")
	barrier := s.begin(s.command("wait", "--members", "x", "--poll", "50ms"))
	require.Equal(s, 124, s.run("wait", "--timeout", "300ms").code)
	require.Zero(s, holder.end().code)
	got := barrier.wait()
	require.Zero(s, got.code, got.stderr)
	s.must("wait")
}

// A healthy server may still be one that is warned of: one without a replica set.
func testDoctor(s *station) {
	got := s.run("doctor", "--json")
	require.Contains(s, []int{0, 1}, got.code, got.stdout)
	var report struct {
		Findings []struct{ Subject, Severity, Text string }
		Promises []struct {
			Trait string
			Kept  *bool
		}
	}
	require.NoError(s, json.Unmarshal([]byte(got.stdout), &report))
	last := report.Findings[len(report.Findings)-1]
	require.Equal(s, "trial", last.Subject)
	require.Equal(s, "fine", last.Severity, last.Text)
	for _, promise := range report.Promises {
		require.NotNil(s, promise.Kept, promise.Trait)
	}
	require.Empty(s, s.locks(), "its own lock was given back")
}

// The command that a refusal shows can be pasted anywhere: it has the source and the
// group in it, and no secret. The password is where it was.
func testClearing(s *station) {
	s.must("acquire", "-n", "x", "--detach", "--ttl", "1h")
	got := s.run("run", "-n", "x", "--", "true")
	require.Equal(s, 121, got.code)
	_, clearing, found := strings.Cut(strings.TrimSpace(got.stderr), "clear it with: ")
	require.True(s, found, got.stderr)
	elsewhere := s.with("MULTILOCK_SOURCE=", "MULTILOCK_GROUP=")
	cleared := elsewhere.begin(elsewhere.shell(clearing)).end()
	require.Zero(s, cleared.code, "%s: %s", clearing, cleared.stderr)
	require.Equal(s, "free", s.lock("x").State)
}
