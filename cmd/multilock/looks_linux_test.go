package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Read-only commands leave nothing behind and change nothing, in any state of the base directory.
func TestLooksChangeNothing(t *testing.T) {
	t.Parallel()
	for scene, prepare := range map[string]func(s *station){
		"a new base": func(*station) {},
		"another group was used": func(s *station) {
			s.must("run", "-n", "x", "-g", "other", "--", "true")
		},
		"a group with all there is": func(s *station) {
			s.must("run", "--once", "-n", "x", "-g", "G", "--", "true")
			s.must("run", "--every", "1h", "-n", "y", "-g", "G", "--", "true")
			s.must("run", "--fair", "-w", "1m", "-n", "f", "-g", "G", "--", "true")
			s.must("acquire", "--detach", "--ttl", "1h", "-n", "held", "-g", "G")
			list := filepath.Join(s.t.TempDir(), "list")
			require.NoError(s.t, os.WriteFile(list, []byte("a\ttrue\nb\tfalse\n"), 0o600))
			require.Equal(s.t, 1, s.run("batch", "-g", "G", list).code)
		},
	} {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			prepare(s)
			for _, look := range looks() {
				before := listing(t, s.base)
				got := s.run(strings.Fields(look)...)
				require.NotContains(t, got.stderr, "no option", "%s: %s", look, got.stderr)
				require.Equal(t, before, listing(t, s.base), "after %s (code %d): %s", look, got.code, got.stderr)
			}
			s.run("status", "-g", "unheard", "x")
			require.Equal(t, 125, s.run("wait", "-g", "unheard", "--timeout", "1m").code, "a look must not open the barrier")
		})
	}
}

// In a directory like /tmp, a read-only command does not create the user's own directory. The first lock
// does, and then its remains are found.
func TestLooksInADirectoryLikeTmp(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.NoError(t, os.Chmod(s.base, 0o777|fs.ModeSticky))
	own := filepath.Join(s.base, fmt.Sprintf(".multilock-%d", os.Geteuid()))
	for _, look := range append(looks(), "__complete status x", "__complete run -n x") {
		before := listing(t, s.base)
		s.run(strings.Fields(look)...)
		require.Equal(t, before, listing(t, s.base), look)
	}
	got := s.run("run", "-n", "x", "--once", "--", "true")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, own)
	info, err := os.Stat(own)
	require.NoError(t, err)
	require.Equal(t, fs.ModeDir|0o700, info.Mode())
	got = s.run("history")
	require.Contains(t, got.stdout, "acquired")
	require.NotContains(t, got.stderr, own, "that was reported")
	require.Equal(t, "x\n", s.must("__complete", "status", ""))

	other := newStation(t) // this run creates the directory, and holds its lock for a while
	require.NoError(t, os.Chmod(other.base, 0o777|fs.ModeSticky))
	holder := other.hold("x", "--ttl", "3s")
	require.Equal(t, 121, other.run("run", "-n", "x", "--", "true").code)
	time.Sleep(2 * time.Second) // the holder maintains its base meanwhile
	require.Zero(t, holder.end().code)
	require.Equal(t, "free", other.lock("x").State)
}

// looks returns the read-only commands, with options that make them read more.
func looks() []string {
	return []string{
		"status", "status -g G", "status -g G x", "status -g G held --json", "status -g G nothing", "status -r -g G", "status --all",
		"history", "history -g G", "history -g G x", "overdue -g G", "overdue -g G --json", "metrics -g G", "metrics",
		"logs -g G", "logs -g G b", "logs -g G --joblog", "report -g G -o -", "report -g G --json", "wait -g G --timeout 1s", "wait -g new --timeout 1s",
		"wait -g G --members x --timeout 1s", "clean -g G --dry-run", "clean -g G --history --dry-run", "clean --dry-run", "config", "completion bash",
		"version", "help",
	}
}

// listing describes all files in a directory.
func listing(t *testing.T, base string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(base, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		// A directory is created and removed again: in staging, to read the server's clock, and in the base
		// by a barrier, to ask the server whether a group exists.
		if path == base || filepath.Base(path) == "staging" {
			_, err := fmt.Fprintln(&b, path, info.Mode())
			return err
		}
		fmt.Fprintf(&b, "%s %s %d %s\n", path, info.Mode(), info.Size(), info.ModTime())
		return nil
	}))
	return b.String()
}
