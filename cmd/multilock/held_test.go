//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRefusalNamesTheHolder(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("x")
	s.awaitNote("x")
	got := s.run("run", "-n", "x", "--", "echo", "not to be seen")
	require.Equal(t, 121, got.code)
	require.Empty(t, got.stdout)
	require.Equal(t, 1, strings.Count(got.stderr, "\n"))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Contains(t, got.stderr, fmt.Sprintf(`multilock: lock "x" is held by %s pid %d by `, host, holder.PID()))
	require.Contains(t, got.stderr, "sh -c 'echo ready; exec cat'")
	require.Contains(t, got.stderr, "last heartbeat")
	require.Contains(t, got.stderr, "its job lives")
	require.NotContains(t, got.stderr, "--force", "the holder is healthy: a forced break would let two jobs run at once")
	require.Zero(t, holder.end().code)
	s.must("run", "-n", "x", "--", "true")
}

// The command in a "held" message can be pasted in any directory, with any names of the lock and its
// directory.
func TestClearingCommandCanBePasted(t *testing.T) {
	t.Parallel()
	names := []string{"plain", "two words", "it's", `"$HOME" \ !x`, "-n", "--", "grün", "tab\there", "x\x1b[31mred", "\xff\xfe", "a\nb"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			s.base = filepath.Join(s.base, "the $base's dir")
			require.NoError(t, os.Mkdir(s.base, 0o700))
			holder := s.hold(name, "-g", "a group", "--ttl", "5s") // short, so that it soon notices the loss
			got := s.run("run", "--name="+name, "-g", "a group", "--fail-after", "1", "--", "true")
			require.Equal(t, 120, got.code)
			require.NotContains(t, got.stderr, "\x1b")
			require.Equal(t, 1, strings.Count(got.stderr, "\n"), got.stderr)
			found := regexp.MustCompile(`clear it with: (multilock .*)\n`).FindStringSubmatch(got.stderr)
			require.NotNil(t, found, got.stderr)

			elsewhere := &station{t: t, base: t.TempDir()}
			cleared := elsewhere.script("bash", found[1])
			require.Zero(t, cleared.code, "%s: %s", found[1], cleared.stderr)
			require.Contains(t, cleared.stdout, "broke lock")
			require.Equal(t, 122, holder.wait().code)
		})
	}
}

func TestRefusalCodes(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("x")
	cases := map[string]struct {
		options []string
		code    int
		stderr  string
	}{
		"plain":          {nil, 121, `lock "x" is held by`},
		"-E":             {[]string{"-E", "7"}, 7, `lock "x" is held by`},
		"-E 0":           {[]string{"-E", "0"}, 0, `lock "x" is held by`},
		"long":           {[]string{"--conflict-exit-code=9"}, 9, `lock "x" is held by`},
		"quiet":          {[]string{"-q"}, 121, ""},
		"quiet success":  {[]string{"-q", "-E", "0"}, 0, ""},
		"waited":         {[]string{"--wait", "3s"}, 124, `timed out waiting: lock "x" is held by`},
		"waited, not -E": {[]string{"-w", "0.05", "-E", "7"}, 124, `timed out waiting`},
		"waited quietly": {[]string{"-w", "0.05", "-q"}, 124, `timed out waiting`},
		"no wait":        {[]string{"--wait", "0"}, 121, `lock "x" is held by`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := (&station{t: t, base: s.base}).run(append(append([]string{"run", "-n", "x"}, c.options...), "--", "echo", "no")...)
			require.Equal(t, c.code, got.code, got.stderr)
			require.Empty(t, got.stdout)
			if c.stderr == "" {
				require.Empty(t, got.stderr)
			} else {
				require.Contains(t, got.stderr, c.stderr)
			}
		})
	}
}

// A waiter reports the holder after a while; in a log as a line.
func TestWaitTellsForWhom(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("x")
	waiter := s.start("run", "-n", "x", "--wait", "forever", "--", "true")
	waiter.Err.Expect(t, "so far; it is held by")
	require.Regexp(t, fmt.Sprintf(`^multilock: waiting for lock "x", .* pid %d .*\n$`, holder.PID()), waiter.Err.String())
	require.Zero(t, holder.end().code)
	require.Zero(t, waiter.wait().code)
}

func TestFailAfterCountsRefusals(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	attempt := func() ended { return s.run("run", "-n", "x", "--fail-after", "3", "-E", "0", "-q", "--", "true") }
	holder := s.hold("x")
	require.Equal(t, ended{0, "", ""}, attempt())
	require.Equal(t, ended{0, "", ""}, attempt())
	for range 2 {
		starved := attempt()
		require.Equal(t, 120, starved.code)
		require.Contains(t, starved.stderr, "attempts in a row; it may hang: lock")
	}
	require.Zero(t, holder.end().code)

	s.hold("x") // another acquisition: the former holder did not hang
	require.Zero(t, attempt().code)
	require.Contains(t, happened(s.history("x")), "not_acquired")
}

// peer creates a lock of the Python MultiLock, with the given age.
func (s *station) peer(name string, age time.Duration) {
	s.t.Helper()
	dir := filepath.Join(s.base, ".locks", name)
	file := filepath.Join(dir, name+".locked")
	require.NoError(s.t, os.MkdirAll(dir, 0o700))
	require.NoError(s.t, os.WriteFile(file, []byte("elsewhere 4711\n"), 0o600))
	then := time.Now().Add(-age)
	require.NoError(s.t, os.Chtimes(file, then, then))
	require.NoError(s.t, os.Chtimes(dir, then, then))
}

func TestMaxAgeClearsAPythonPeersLock(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.peer("x", 2*time.Hour)
	got := s.run("run", "-n", "x", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, "held by elsewhere pid 4711")
	require.Contains(t, got.stderr, "only --max-age or break --force can clear it")
	require.NotContains(t, got.stderr, "clear it with: ")
	require.Equal(t, 121, s.run("run", "-n", "x", "--max-age", "3h", "--", "true").code)
	require.Equal(t, "mine\n", s.must("run", "-n", "x", "--maxage", "1s", "--", "echo", "mine"))
	require.Equal(t, []string{"broken", "acquired", "released"}, happened(s.history("x")))
}
