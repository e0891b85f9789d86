package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/multilock"
)

// reader starts a run that shares the lock until its input ends.
func (s *station) reader() *running {
	s.t.Helper()
	r := s.start(append([]string{"run", "--shared", "-n", "db.shared", "--"}, clitest.WaitingJob()...)...)
	r.Expect("ready")
	return r
}

// Readers run in parallel. A plain run with the same name runs while there are no readers, and reports for
// which it waits. A killed reader does not block it.
func TestSharedRuns(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	one, two := s.reader(), s.reader()
	require.Equal(t, "held", s.lock(multilock.ReaderName("db.shared", 1)).State)
	got := s.run("run", "-n", "db.shared", "--", "true")
	require.Equal(t, 121, got.code, got.stderr)
	require.Contains(t, got.stderr, `lock "db.shared#reader-`)
	require.Zero(t, one.end().code)

	writer := s.start(append([]string{"run", "-n", "db.shared", "--wait", "forever", "--"}, clitest.WaitingJob()...)...)
	s.eventually("the writer is next", func() bool {
		return s.run("run", "--shared", "-n", "db.shared", "--", "true").code == 121
	})
	two.Kill()
	writer.Expect("ready")
	got = s.run("run", "--shared", "-n", "db.shared", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, `lock "db.shared" is held by`)
	require.Zero(t, writer.end().code)
	require.Equal(t, "db.shared  \n", s.must("run", "--shared", "-n", "db.shared", "--", "sh", "-c", `echo "$MULTILOCK_NAME $MULTILOCK_FENCE $MULTILOCK_SLOT"`))
	require.Empty(t, s.locks(), "nothing is left")
}

// Some filesystems do not distinguish the two names.
func TestSharedByCapitalLetters(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	r := s.reader()
	got := s.run("run", "-n", "DB.Shared", "--", "true")
	require.Equal(t, 121, got.code, got.stderr)
	require.Contains(t, got.stderr, `lock "db.shared#reader-1" is held by`)
	r.end()
	s.must("run", "-n", "DB.Shared", "--", "true")
}

// Options that contradict each other are rejected before anything is done.
func TestSharedOptions(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"--shared", "-n", "db"}, "use -n db.shared for both"},
		{[]string{"--slots", "2", "-n", "db.shared"}, "which readers share"},
	} {
		got := s.run(append(append([]string{"run"}, test.words...), "--", "true")...)
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, test.want)
	}
}

// A script can be a reader, too: it has its own token, and its end releases its share. A writer fails while
// one reader is left.
func TestSharedAcquire(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	owner := s.owner()
	one := s.acquire(owner, "--shared", "-n", "db.shared", "--ttl", "2s")
	two := s.acquire(owner, "--shared", "-n", "db.shared", "--ttl", "2s")
	require.Equal(t, "db.shared", one.Name)
	require.NotEqual(t, one.Token, two.Token)
	require.Zero(t, one.Fence)
	require.Equal(t, owner.PID(), s.lock(multilock.ReaderName("db.shared", 2)).PID)

	release := []string{"release", "-n", "db.shared", "--token"}
	got := s.run(append(release, "wrong")...)
	require.Equal(t, 122, got.code, got.stderr)
	require.Equal(t, ended{0, "", ""}, s.run(append(release, one.Token)...))
	require.Equal(t, 122, s.run(append(release, one.Token)...).code)
	require.Equal(t, 121, s.run("run", "-n", "db.shared", "--", "true").code)
	require.Equal(t, two.Token, s.lock(multilock.ReaderName("db.shared", 2)).Token)

	owner.end()
	s.must("run", "-n", "db.shared", "--wait", "30s", "--", "true")
	detached := s.must("acquire", "--shared", "-n", "db.shared", "--detach", "--ttl", "1h")
	require.Equal(t, 121, s.run("run", "-n", "db.shared", "--", "true").code)
	require.Equal(t, ended{0, "", ""}, s.run(append(release, detached[:len(detached)-1])...))
	alone := s.acquire(s.owner(), "-n", "db.shared")
	require.Equal(t, 121, s.run("acquire", "--shared", "-n", "db.shared").code)
	require.Equal(t, ended{0, "", ""}, s.run(append(release, alone.Token)...), "a writer's lock has the name itself")
	got = s.run("acquire", "--shared", "-n", "db")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "use -n db.shared for both")
}
