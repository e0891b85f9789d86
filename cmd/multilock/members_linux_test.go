package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fellows is a directory that root has given to a group, in which mallory is: members may
// forge its state, and must not decide what root runs or which files root writes to.
type fellows struct {
	*station
	ours    string // a file of root's own, elsewhere
	private string // a directory that only root may enter
}

func newMembers(t *testing.T) *fellows {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	base := forAll(t)
	require.NoError(t, os.Chown(base, 0, mallory))
	require.NoError(t, os.Chmod(base, 0o770|fs.ModeSetgid))
	m := &fellows{station: &station{t: t, base: base}, private: t.TempDir()}
	require.NoError(t, os.Chmod(m.private, 0o700)) //nolint:gosec // root's
	m.ours = filepath.Join(m.private, "shadow")
	require.NoError(t, os.WriteFile(m.ours, []byte("root's own\n"), 0o600))
	return m
}

// member has mallory do something in the base.
func (m *fellows) member(script string) {
	m.t.Helper()
	cmd := exec.Command("sh", "-ec", script) //nolint:gosec // a test's own
	cmd.Dir = m.base
	cmd.Env = append(os.Environ(), "OURS="+m.ours, "PRIVATE="+m.private)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: mallory, Gid: mallory}}
	said, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", said)
}

// A list is a program. Root runs none that a member of the group can have written, or moved
// into the way.
func TestListsOfMembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		list   string
	}{
		"owned by a member":            {`printf 'a\techo done\n' >list; chmod 664 list`, "list"},
		"in a directory of a member's": {`mkdir dir; chmod 755 dir; printf 'a\techo done\n' >dir/list`, "dir/list"},
		"a link of a member's":         {`ln -s "$OURS" list`, "list"},
		"a pipe":                       {`mkfifo list`, "list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMembers(t)
			m.member("umask 002; " + c.script)
			began := time.Now()
			got := m.run("batch", "-g", "G", filepath.Join(m.base, c.list))
			require.Equal(t, 125, got.code, got.stderr)
			require.NotContains(t, got.stdout, "done")
			require.Less(t, time.Since(began), watchdog)
		})
	}
	t.Run("root's own, moved by a member", func(t *testing.T) {
		t.Parallel()
		m := newMembers(t)
		require.NoError(t, os.WriteFile(filepath.Join(m.base, "old"), []byte("a\techo done\n"), 0o600))
		m.member("mkdir dir; mv old dir/list")
		got := m.run("batch", "-g", "G", filepath.Join(m.base, "dir", "list"))
		require.Equal(t, 125, got.code, got.stdout)
		require.Contains(t, got.stderr, "standard input")
	})
	t.Run("root's own, on the standard input", func(t *testing.T) {
		t.Parallel()
		m := newMembers(t)
		cmd := m.command("batch", "-g", "G", "-")
		list, err := os.Open(m.ours)
		require.NoError(t, err)
		defer list.Close()
		require.NoError(t, os.WriteFile(m.ours, []byte("a\techo done\n"), 0o600))
		cmd.Stdin = list
		require.Zero(t, m.finish(cmd).code)
	})
}

// What root writes goes where root has said, and through no link of a member's.
func TestFilesNamedAmongMembers(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"run --log":          {"run", "-n", "x", "--log", "out", "--", "echo", "text"},
		"run --log DIR/":     {"run", "-n", "x", "--log", "dir/", "--", "echo", "text"},
		"batch --joblog":     {"batch", "-g", "G", "--joblog", "out", "-"},
		"batch --results":    {"batch", "-g", "G", "--results", "dir", "-"},
		"batch --logs":       {"batch", "-g", "G", "--logs", "dir", "-"},
		"report -o":          {"report", "-g", "G", "-o", "dir/out"},
		"metrics --textfile": {"metrics", "-g", "G", "--textfile", "dir/out.prom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMembers(t)
			m.must("run", "-n", "before", "-g", "G", "--", "true")
			m.member(`ln -s "$OURS" out; ln -s "$PRIVATE" dir`)
			before := snapshot(t, m.private)
			cmd := m.command(args...)
			cmd.Dir = m.base
			list := filepath.Join(t.TempDir(), "list")
			require.NoError(t, os.WriteFile(list, []byte("a\techo text\n"), 0o600))
			in, err := os.Open(list)
			require.NoError(t, err)
			defer in.Close()
			cmd.Stdin = in
			got := m.finish(cmd)
			require.Equal(t, before, snapshot(t, m.private), "code %d: %s", got.code, got.stderr)
		})
	}
}
