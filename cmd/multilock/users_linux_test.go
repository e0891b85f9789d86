package main_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const team = 65520 // a group of users

// member is a user of the group, with a umask that denies access to the group.
type member struct {
	*station
	uid   uint32
	umask string
}

// start starts the program by a shell that sets the umask, and execs it.
func (m member) start(args ...string) *running {
	m.t.Helper()
	cmd := m.command(args...)
	cmd.Args = append([]string{"sh", "-c", "umask " + m.umask + `; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.Dir = m.base
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: m.uid, Gid: m.uid, Groups: []uint32{team}}}
	return begin(m.t, cmd)
}

func (m member) run(args ...string) ended {
	m.t.Helper()
	return m.start(args...).end()
}

func (m member) must(args ...string) string {
	m.t.Helper()
	got := m.run(args...)
	require.Zero(m.t, got.code, "uid %d, %v: %s", m.uid, args, got.stderr)
	return got.stdout
}

// members returns two users of a group, and a base directory for the group.
func members(t *testing.T) (alice, bob member) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play two users of a group")
	}
	s := &station{t: t, base: openToAll(t)}
	require.NoError(t, os.Chown(s.base, 0, team))
	require.NoError(t, os.Chmod(s.base, 0o775|os.ModeSetgid))
	return member{s, 65533, "022"}, member{s, 65532, "077"}
}

// Two users of a group run all commands in one base directory, in turns.
func TestUsersOfAGroup(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"one first", "the other first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			a, b := members(t)
			if order != "one first" {
				a, b = b, a
			}
			fences := a.must("run", "-n", "f", "--", "sh", "-c", "echo $MULTILOCK_FENCE") + b.must("run", "-n", "f", "--", "sh", "-c", "echo $MULTILOCK_FENCE")
			require.Equal(t, "1\n2\n", fences)

			a.must("run", "-n", "once", "--once", "--", "true")
			require.Contains(t, b.run("run", "-n", "once", "--once", "--", "false").stderr, "already ran")
			b.must("clean", "--results", "once")
			require.Equal(t, "anew\n", a.must("run", "-n", "once", "--once", "--", "echo", "anew"))

			// Another user's processes cannot be inspected, so only missing heartbeats are evidence.
			require.Equal(t, -1, a.run("run", "-n", "x", "--ttl", "2s", "--", "sh", "-c", "kill -9 $PPID").code)
			b.must("run", "-n", "x", "--wait", "1m", "--", "true")
			require.Contains(t, a.must("history"), "broken")

			list := filepath.Join(a.base, "list")
			require.NoError(t, os.WriteFile(list, []byte("j1\ttrue\nj2\ttrue\n"), 0o644))
			a.must("batch", "-g", "jobs", list)
			require.Contains(t, b.must("status", "-g", "jobs", "--results"), "j2")
			b.must("clean", "-g", "jobs", "--results")
			b.must("batch", "-g", "jobs", list)

			held := a.start("run", "-n", "z", "--", "cat")
			a.eventually("the lock is held", func() bool { return a.lock("z").State == "held" })
			stopped := b.start("run", "-n", "z", "--wait", "forever", "--", "true")
			staged := func() []string {
				found, _ := filepath.Glob(filepath.Join(a.base, ".multilock", "staging", "*", "z.locked"))
				return found
			}
			b.eventually("the other waits", func() bool {
				for _, file := range staged() {
					if content, err := os.ReadFile(file); err == nil && len(content) > 0 {
						return true
					}
				}
				return false
			})
			stopped.Kill()
			stopped.wait()
			a.must("clean")
			require.Empty(t, staged(), "what a dead waiter of another user has left")
			require.Zero(t, held.end().code)
			for _, m := range []member{a, b} {
				require.NotContains(t, m.run("doctor").stdout, "not trusted")
			}
		})
	}
}
