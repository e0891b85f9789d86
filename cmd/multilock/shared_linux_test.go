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

// Readers run side by side; a plain run of the name runs beside none, and is told whom it
// waits for. A killed reader is in nobody's way.
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

// What does not go together is said before anything is done.
func TestSharedOptions(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"--shared", "-n", "db"}, "write -n db.shared, there and here"},
		{[]string{"--shared", "-n", "db.shared", "--once"}, "leave them out"},
		{[]string{"--slots", "2", "-n", "db.shared"}, "which readers share"},
	} {
		got := s.run(append(append([]string{"run"}, test.words...), "--", "true")...)
		require.Equal(t, 125, got.code)
		require.Contains(t, got.stderr, test.want)
	}
}
