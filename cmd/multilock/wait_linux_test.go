package main_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// On a terminal a bar shows the progress of the wait, and is removed at the end.
func TestWaitShowsABarOnATerminal(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "--once", "-n", "a", "--", "true")
	job := s.hold("b", "--once")
	_, waiting := onTerminal(t, s.command("wait", "--members", "a,b", "--poll", "50ms", "-v"))
	waiting.Expect("[############............] (1/2) 1 held (b by ")
	require.Zero(t, job.end().code)
	waiting.Expect(removed + "multilock: nothing is left to wait for")
	require.Zero(t, waiting.wait().code)
}

// removed is the sequence that clears the line.
const removed = "\r\x1b[K"

// The bar fits on one line of the terminal, at any width, and follows its width.
func TestWaitFitsTheWindow(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "--once", "-n", "a", "--", "true")
	name := strings.Repeat("錠", 40)
	job := s.hold(name, "--once")
	const narrow = 30
	window, waiting := onTerminalOf(t, narrow, s.command("wait", "--members", "a,"+name, "--poll", "50ms", "-v"))
	waiting.Expect(removed + "(1/2) 1 held (錠錠")
	window.Resize(140)
	waiting.Expect("[############............] (1/2) 1 held (錠錠")
	shown, _, _ := strings.Cut(waiting.Out.String(), "[#")
	for line := range strings.SplitSeq(shown, removed) {
		require.Less(t, width(line), narrow, line)
	}
	window.Resize(1)
	require.Zero(t, job.end().code)
	waiting.Expect(removed + "multilock: nothing is left to wait for")
	require.Zero(t, waiting.wait().code)
}

// width returns the number of columns of a text with ASCII and wide characters.
func width(text string) int {
	columns := 0
	for _, r := range text {
		columns++
		if r > unicode.MaxASCII && r != '…' {
			columns++
		}
	}
	return columns
}

// The total is not always known.
func TestWaitShowsThatItLives(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	job := s.hold("b")
	_, waiting := onTerminal(t, s.command("wait", "--poll", "50ms", "-v"))
	for _, sign := range []string{"| ", "/ ", "- ", `\ `} {
		waiting.Expect(removed + sign + "1 held (b by ")
	}
	require.Zero(t, job.end().code)
	waiting.Expect(removed + "multilock: nothing is left to wait for")
	require.Zero(t, waiting.wait().code)
}

// The main use case: jobs on several hosts, a barrier on one, then the next step.
func TestBarrierBetweenHosts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	var jobs []*running
	for _, name := range []string{"alpha", "beta", "gamma"} {
		job := begin(t, s.host(name).on(append([]string{"run", "-n", "job-" + name, "--"}, clitest.WaitingJob()...)...))
		job.Expect("ready")
		jobs = append(jobs, job)
	}
	barrier := begin(t, s.host("delta").on("wait", "--poll", "50ms"))
	barrier.Err.Expect(t, "3 held (job-alpha by alpha)")
	for _, job := range jobs[1:] {
		require.Zero(t, job.end().code)
	}
	require.Equal(t, []string{"job-alpha"}, s.held())
	require.Zero(t, jobs[0].end().code)
	require.Zero(t, barrier.wait().code)
	require.Empty(t, s.held())
}

// Barriers on two hosts report the same about a failed job and one whose host crashed, even if one barrier
// starts later. They also agree after both jobs have run again.
func TestBarriersOfSeveralHostsAgree(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	alpha, beta, gamma := s.host("alpha"), s.host("beta"), s.host("gamma")
	crashing := begin(t, alpha.on(append([]string{"run", "-n", "crashes", "--ttl", "2s", "--"}, clitest.WaitingJob()...)...))
	crashing.Expect("ready")
	require.Equal(t, 3, s.finish(beta.on("run", "-n", "fails", "--", "sh", "-c", "exit 3")).code)
	require.NoError(t, crashing.Cmd.Process.Kill())
	crashing.wait()
	for _, host := range []*host{beta, gamma, beta} {
		got := s.finish(host.on("wait", "--poll", "50ms"))
		require.Equal(t, 1, got.code, got.stderr)
		require.Regexp(t, `job "fails" failed with exit code 3 on beta at `, got.stderr)
		require.Regexp(t, `job "crashes" died, run by alpha pid \d+ .*no heartbeat for`, got.stderr)
	}
	require.Zero(t, s.finish(gamma.on("run", "-n", "fails", "--", "true")).code)
	require.Zero(t, s.finish(gamma.on("run", "-n", "crashes", "--", "true")).code)
	for _, host := range []*host{alpha, beta} {
		got := s.finish(host.on("wait", "--poll", "50ms"))
		require.Zero(t, got.code, got.stderr)
	}
}

// held returns the locks that "status" lists.
func (s *station) held() []string {
	s.t.Helper()
	var names []string
	for _, l := range s.locks() {
		names = append(names, l.Name)
	}
	return names
}
