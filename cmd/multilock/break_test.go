//go:build unix

package main_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// dead leaves a lock whose holder and keeper were killed.
func (s *station) dead(name string) acquired {
	s.t.Helper()
	owner := s.owner()
	a := s.acquire(owner, "-n", name, "--ttl", "1h")
	s.killKeeper(a)
	owner.end()
	require.Equal(s.t, "dead", s.lock(name).State)
	return a
}

func TestBreak(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("living", "--ttl", "5s")
	token := s.lock("living").Token
	corpse := s.dead("dead")
	cases := []struct {
		name   string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"free", []string{"free"}, 0, "lock \"free\" is free\n", ""},
		{"free by force", []string{"free", "--force"}, 0, "lock \"free\" is free\n", ""},
		{"living", []string{"living"}, 121, "", `lock "living" is held by`},
		{"living, quietly", []string{"-q", "living"}, 121, "", ""},
		{"living, its token", []string{"living", "--token", token}, 121, "", `lock "living" is held by`},
		{"living, another token", []string{"living", "--force", "--token", "wrong"}, 121, "", "this is another acquisition than the one named"},
		{"dead, another token", []string{"dead", "--token", token}, 121, "", "this is another acquisition than the one named"},
		{"dead", []string{"dead", "--token", corpse.Token}, 0, "broke lock \"dead\", which was held by", ""},
		{"dead no more", []string{"dead"}, 0, "lock \"dead\" is free\n", ""},
		{"living by force", []string{"--force", "--token", token, "-n", "living"}, 0, "broke lock \"living\", which was held by", "waiting until its job must have ended"},
	}
	for _, c := range cases {
		got := s.run(append([]string{"break"}, c.args...)...)
		require.Equal(t, c.code, got.code, c.name)
		require.Contains(t, got.stdout, c.stdout, c.name)
		require.Contains(t, got.stderr, c.stderr, c.name)
		require.Equal(t, c.stdout == "", got.stdout == "", c.name)
		require.Equal(t, c.stderr == "", got.stderr == "", c.name)
	}
	require.Equal(t, 122, holder.wait().code)
	broke := s.history("dead")[1]
	require.Equal(t, "broken", broke.What)
	require.Equal(t, corpse.Token, broke.Token)
	require.Contains(t, broke.Why, "process")
}

// A forced break returns after the old job has ended: its holder notices at its next heartbeat.
func TestForcedBreakWaitsForTheOldJob(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("x", "--ttl", "10s")
	s.awaitNote("x")
	start := time.Now()
	got := s.run("break", "x", "--force")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stderr, "waiting until its job must have ended, 10s at most; --now does not wait")
	require.Less(t, time.Since(start), 9*time.Second, "it has seen the holder end")
	require.Equal(t, 122, holder.wait().code)

	deaf := s.hold("deaf", "--ttl", "3s")
	deaf.Signal(syscall.SIGSTOP)
	start = time.Now()
	require.Zero(t, s.run("break", "deaf", "--force", "-q").code)
	require.GreaterOrEqual(t, time.Since(start), 2*time.Second)
	deaf.Signal(syscall.SIGCONT)
	require.Equal(t, 122, deaf.wait().code)

	s.hold("y", "--ttl", "1h")
	require.Equal(t, ended{0, "", ""}, s.run("break", "y", "--force", "--now", "-q"))
}

func TestBreakJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	corpse := s.dead("x")
	for _, want := range []struct {
		broke bool
		state string
		token string
	}{{true, "dead", corpse.Token}, {false, "free", ""}} {
		var report struct {
			Broke bool `json:"broken_here"`
			Lock  clitest.Lock
		}
		require.NoError(t, json.Unmarshal([]byte(s.must("break", "x", "--json")), &report))
		require.Equal(t, want.broke, report.Broke)
		require.Equal(t, want.state, report.Lock.State)
		require.Equal(t, want.token, report.Lock.Token)
	}
}

// tree lists all files in the base directory.
func (s *station) tree() []string {
	s.t.Helper()
	var paths []string
	require.NoError(s.t, filepath.WalkDir(s.base, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	return paths
}

func TestClean(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	require.Equal(t, ended{0, "nothing to clean\n", ""}, s.run("clean"))
	s.requireUntouched()

	s.hold("living")
	s.awaitNote("living")
	waiter := s.start("run", "-n", "living", "--wait", "forever", "--", "true")
	s.eventuallyWaiting()
	s.dead("dead")
	waiter.Signal(syscall.SIGKILL)
	waiter.wait()
	require.Equal(t, 1, s.staged(), "the killed contender's leftover")

	s.must("clean", "--dry-run") // creates what inspections need
	before := s.tree()
	foreseen := s.must("clean", "--dry-run", "-v")
	require.Equal(t, before, s.tree())
	require.Regexp(t, `(?m)^would break lock dead: .*process`, foreseen)
	require.Regexp(t, `(?m)^would remove leftover [0-9a-f-]+, .* old: its maker is gone`, foreseen)
	require.Regexp(t, `(?m)^left lock living alone: its job lives`, foreseen)

	done := s.must("clean")
	require.Regexp(t, `(?m)^broke lock dead: .*process`, done)
	require.Regexp(t, `(?m)^removed leftover [0-9a-f-]+, .* old: its maker is gone`, done)
	require.NotContains(t, done, "living")
	require.Zero(t, s.staged())
	require.Equal(t, "free", s.lock("dead").State)
	require.Equal(t, "held", s.lock("living").State)
	require.Equal(t, "nothing to clean\n", s.must("clean"))
	require.Empty(t, s.must("clean", "-q"))
}

func TestCleanJSON(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.hold("living")
	s.dead("dead")
	var report struct {
		DryRun       bool `json:"dry_run"`
		Broken, Held []clitest.Lock
		Stale        []any `json:"stale_entries"`
		Errors       []string
	}
	require.NoError(t, json.Unmarshal([]byte(s.must("clean", "--json")), &report))
	require.False(t, report.DryRun)
	require.Len(t, report.Broken, 1)
	require.Equal(t, "dead", report.Broken[0].Name)
	require.Len(t, report.Held, 1)
	require.Equal(t, "living", report.Held[0].Name)
	require.NotNil(t, report.Stale)
	require.NotNil(t, report.Errors)
}

// The remains of a crash during a release do not hold the lock, but would block a barrier that may not remove
// them.
func TestCleanRemovesWhatACrashedReleaseLeft(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.must("run", "-n", "job", "--", "true")
	left := filepath.Join(s.base, ".locks", "job")
	require.NoError(t, os.Mkdir(left, 0o777))
	s.must("clean", "--dry-run")
	require.DirExists(t, left)
	s.must("clean")
	require.NoDirExists(t, left)
}
