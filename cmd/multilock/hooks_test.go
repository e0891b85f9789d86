//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// hooked is a run whose hooks record their environment and input.
type hooked struct {
	*station
	dir string
}

func newHooked(t *testing.T) *hooked {
	t.Helper()
	return &hooked{newStation(t), t.TempDir()}
}

// options returns options whose hooks each write to their own file.
func (h *hooked) options() []string {
	var all []string
	for _, what := range []string{"success", "failure", "loss", "overrun"} {
		all = append(all, "--on-"+what, `{ env | grep ^MULTILOCK_ | sort; cat; } >`+h.dir+"/tmp-"+what+"; mv "+h.dir+"/tmp-"+what+" "+h.dir+"/"+what)
	}
	return append(all, "--overrun", "1h")
}

func (h *hooked) told(what string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, what))
	require.NoError(h.t, err)
	return string(text)
}

func (h *hooked) requireOnly(what ...string) {
	h.t.Helper()
	entries, err := os.ReadDir(h.dir)
	require.NoError(h.t, err)
	found := []string{}
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.ElementsMatch(h.t, what, found)
}

func (h *hooked) runs(options []string, command ...string) ended {
	h.t.Helper()
	return h.run(append(append(append([]string{"run", "-n", "x"}, h.options()...), options...), append([]string{"--"}, command...)...)...)
}

func TestHookOfASuccess(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	require.Equal(t, ended{0, "hello\n", ""}, h.runs(nil, "echo", "hello"))
	h.requireOnly("success")
	told := h.told("success")
	for _, line := range []string{
		"MULTILOCK_EVENT=success", "MULTILOCK_NAME=x", "MULTILOCK_GROUP=.locks", "MULTILOCK_EXIT=0", "MULTILOCK_JOB_EXIT=0",
		"MULTILOCK_FENCE=1", "MULTILOCK_COMMAND=echo hello", "MULTILOCK_WHY=",
	} {
		require.Contains(t, told, line+"\n")
	}
	require.Regexp(t, `(?m)^MULTILOCK_DURATION=\d+$`, told)
	require.Regexp(t, `(?m)^MULTILOCK_HOLDER=\S+ pid \d+`, told)
	require.NotContains(t, told, "MULTILOCK_TOKEN")
}

// The hook of a failure receives how the job ended, and the end of its output.
func TestHookOfAFailure(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	log := filepath.Join(t.TempDir(), "log")
	got := h.runs([]string{"--log", log}, "sh", "-c", "yes | head -c 100000; echo the end; exit 7")
	require.Equal(t, 7, got.code)
	h.requireOnly("failure")
	told := h.told("failure")
	for _, line := range []string{"MULTILOCK_EXIT=7", "MULTILOCK_JOB_EXIT=7", "MULTILOCK_LOG=" + log, "MULTILOCK_WHY=the job ended with code 7"} {
		require.Contains(t, told, line+"\n")
	}
	require.True(t, strings.HasSuffix(told, "y\nthe end\n"), told)
	require.Less(t, len(told), 12_000)
}

// Any other bad end is a failure, too, even before the job starts. An end that is not a failure has no hook.
func TestHookOfOtherEnds(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		options []string
		command []string
		code    int
		want    string
	}{
		"no such command": {nil, []string{"/nonexistent"}, 127, "MULTILOCK_WHY=/nonexistent: command not found\n"},
		"out of time":     {[]string{"--max-runtime", "100ms"}, []string{"sleep", "1000"}, 124, "MULTILOCK_JOB_EXIT=143\n"},
		"no log":          {[]string{"--log", "/nonexistent/log"}, []string{"true"}, 125, "MULTILOCK_WHY=--log: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			require.Equal(t, c.code, h.runs(c.options, c.command...).code)
			h.requireOnly("failure")
			require.Contains(t, h.told("failure"), c.want)
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		holder := h.hold("x")
		require.Equal(t, 121, h.runs(nil, "true").code)
		require.Equal(t, 125, h.runs([]string{"-E", "125"}, "true").code)
		h.requireOnly()
		require.Equal(t, 120, h.runs([]string{"--fail-after", "1"}, "true").code)
		h.requireOnly("failure")
		require.Contains(t, h.told("failure"), "MULTILOCK_EXIT=120\n")
		holder.end()
	})
	t.Run("done before", func(t *testing.T) {
		t.Parallel()
		h := newHooked(t)
		h.must("run", "-n", "x", "--once", "--", "true")
		require.Zero(t, h.runs([]string{"--once"}, "true").code)
		h.requireOnly()
	})
}

func TestHookOfALostLock(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		h := newHooked(t)
		options := h.options()
		if !own {
			options = append(options, "--on-loss", "")
		}
		r := h.hold("x", append(options, "--ttl", "2s")...)
		h.must("break", "--force", "--now", "x")
		require.Equal(t, 122, r.wait().code)
		what := map[bool]string{true: "loss", false: "failure"}[own]
		h.requireOnly(what)
		require.Contains(t, h.told(what), "MULTILOCK_EVENT=loss\n")
	}
}

// The lock is free while a hook runs. The hook is terminated after its timeout, and its failure is reported.
func TestHooksAreInNobodysWay(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	slow := s.start("run", "-n", "x", "--on-success", "echo hooked; exec sleep 1000", "--", "true")
	slow.Err.Expect(t, "hooked")
	s.must("run", "-n", "x", "--", "true")
	slow.Signal(syscall.SIGTERM)
	got := slow.wait()
	require.Equal(t, ended{0, "", "hooked\nmultilock: --on-success: its command was terminated, because this process is to end\n"}, got)

	bounded := s.run("run", "--on-failure", "sleep 1000 & wait", "--hook-timeout", "100ms", "--", "sh", "-c", "exit 5")
	require.Equal(t, ended{5, "", "multilock: --on-failure: its command was terminated after 100ms, the limit of --hook-timeout\n"}, bounded)
	failing := s.run("run", "--on-success", "exit 9", "--", "true")
	require.Equal(t, ended{0, "", "multilock: --on-success: its command ended with code 9\n"}, failing)
}

// An overrun is reported once, while the job runs.
func TestHookOfAnOverrun(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	r := h.start(append(append([]string{"run", "-n", "x"}, h.options()...), "--overrun", "200ms", "--", "sh", "-c", "echo ready; exec cat")...)
	h.eventually("the hook has run", func() bool { _, err := os.Stat(filepath.Join(h.dir, "overrun")); return err == nil })
	require.Equal(t, "held", h.lock("x").State)
	told := h.told("overrun")
	require.Contains(t, told, "MULTILOCK_EVENT=overrun\n")
	require.Contains(t, told, `MULTILOCK_WHY=job "x" takes too long: it has run for 200ms, the limit of --overrun`)
	require.NotContains(t, told, "MULTILOCK_EXIT")
	got := r.end()
	require.Zero(t, got.code)
	require.Equal(t, 1, strings.Count(got.stderr, "takes too long"))
	h.requireOnly("overrun", "success")
}

// With ticks, a job overruns when its next tick begins.
func TestHookOfATickThatIsOverrun(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	r := s.start("run", "-n", "x", "--every", "1s", "--on-overrun", `echo "hooked: $MULTILOCK_WHY"`, "--", "cat")
	r.Err.Expect(t, "hooked: job \"x\" takes too long: its next tick, that of ")
	require.NoError(t, r.In.Close())
	require.Zero(t, r.wait().code)
}

// A hook that takes its full timeout delays the run's end by no more than that.
func TestOverrunHookOfAJobThatEnds(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	r := s.start("run", "--overrun", "1ms", "--on-overrun", "echo hooked; exec sleep 1000", "--hook-timeout", "5s", "--", "cat")
	r.Err.Expect(t, "hooked")
	require.NoError(t, r.In.Close())
	s.eventuallyFree("lock")
	require.Contains(t, r.wait().stderr, "--on-overrun: its command was terminated after 5s")
}

func TestHookOptionsThatContradict(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, wrong := range [][]string{{"--on-overrun", "true"}, {"--overrun", "0"}, {"--hook-timeout", "0"}, {"--on-lost", "mail"}} {
		require.Equal(t, 125, s.run(append(append([]string{"run"}, wrong...), "--", "true")...).code)
	}
	s.requireUntouched()
}
