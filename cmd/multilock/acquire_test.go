//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// acquired is the output of acquire --json.
type acquired struct {
	Name, Group, Token string
	Fence              uint64
	Keeper             int `json:"keeper_pid"`
	For                int `json:"for_pid"`
}

// owner starts a process that owns locks.
func (s *station) owner() *running {
	s.t.Helper()
	path, err := exec.LookPath("cat")
	require.NoError(s.t, err)
	return begin(s.t, exec.Command(path))
}

// acquire acquires a lock for an owner. The keeper ends with the test, because the owner does. It ends before
// the base directory is removed, because it still writes there.
func (s *station) acquire(owner *running, args ...string) acquired {
	s.t.Helper()
	var a acquired
	out := s.must(append([]string{"acquire", "--json", "--pid", strconv.Itoa(owner.PID())}, args...)...)
	require.NoError(s.t, json.Unmarshal([]byte(out), &a))
	s.t.Cleanup(func() {
		_ = owner.In.Close()
		if a.Keeper > 0 {
			s.eventually("the keeper ends", func() bool { return syscall.Kill(a.Keeper, 0) != nil })
		}
	})
	return a
}

func TestAcquireAndRelease(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	owner := s.owner()
	a := s.acquire(owner, "-n", "x", "-g", "G", "--ttl", "2s") // short, so that the keeper soon notices the release
	require.Equal(t, "x", a.Name)
	require.Equal(t, "G", a.Group)
	require.Equal(t, owner.PID(), a.For)
	require.Equal(t, uint64(1), a.Fence)
	require.NotZero(t, a.Keeper)

	got := s.run("acquire", "-n", "x", "-g", "G")
	require.Equal(t, 121, got.code)
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "acquire for pid "+strconv.Itoa(owner.PID()))
	require.NotContains(t, got.stderr, "--force")
	require.Equal(t, ended{121, "", ""}, s.run("acquire", "-n", "x", "-g", "G", "-q"))

	release := []string{"release", "-n", "x", "-g", "G", "--token"}
	require.Equal(t, 122, s.run(append(release, "wrong")...).code)
	require.Equal(t, ended{0, "", ""}, s.run(append(release, a.Token)...))
	s.eventually("the keeper ends", func() bool { return syscall.Kill(a.Keeper, 0) != nil })
	twice := s.run(append(release, a.Token)...)
	require.Equal(t, 122, twice.code)
	require.Equal(t, "multilock: lock \"x\" is lost: it is no longer held\n", twice.stderr)
	events := s.history("-g", "G")
	require.Equal(t, []string{"acquired", "released"}, happened(events))
	require.Equal(t, owner.PID(), events[0].PID, "the lock is the owner's, in all that is said about it")
}

func TestReleaseLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	first := s.acquire(s.owner(), "-n", "x")
	require.Contains(t, s.must("break", "x", "--force", "--now"), "broke lock")
	second := s.acquire(s.owner(), "-n", "x")
	late := s.run("release", "-n", "x", "--token", first.Token)
	require.Equal(t, 122, late.code)
	require.Contains(t, late.stderr, "another acquisition")
	require.Equal(t, second.Token, s.lock("x").Token)

	cmd := s.command("release", "-n", "x", "--json")
	cmd.Env = append(cmd.Env, "MULTILOCK_TOKEN="+second.Token)
	got := s.finish(cmd)
	require.Zero(t, got.code, got.stderr)
	require.JSONEq(t, `{"schema": 1, "name": "x", "group": ".locks", "token": "`+second.Token+`"}`, got.stdout)
}

// The keeper renews the lock far beyond its TTL.
func TestKeeperRenews(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	a := s.acquire(s.owner(), "-n", "x", "--ttl", "2s")
	s.eventually("the lock is older than two TTLs", func() bool {
		l := s.lock("x")
		require.Equal(t, a.Token, l.Token, l.Why)
		return l.Age != nil && *l.Age > 4
	})
	require.Equal(t, 121, s.run("run", "-n", "x", "--", "true").code)
}

func TestOwnersEndReleases(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	owner := s.owner()
	s.acquire(owner, "-n", "x")
	owner.end()
	s.eventuallyFree("x")
	s.eventually("the release is in the history", func() bool { return len(s.history("x")) == 2 })
	require.Contains(t, s.history("x")[1].Why, "process "+strconv.Itoa(owner.PID())+" ended")
}

// Without --pid the lock belongs to the script, and not to a subshell that ends before the script's next
// line.
func TestAcquireIsForTheCallingShell(t *testing.T) {
	t.Parallel()
	forms := map[string]string{
		"plain":         `token=$(multilock acquire -n x)`,
		"in a list":     `token=$(multilock acquire -n x || echo no)`,
		"to a file":     `multilock acquire -n x > $HOME/token; token=$(cat $HOME/token)`,
		"both captured": `token=$(multilock acquire -n x 2>&1)`,
	}
	if runtime.GOOS == "linux" {
		forms["in a subshell"] = `token=$(cd / && (multilock acquire -n x) && true)`
		forms["in a function and a pipe"] = `take() { (multilock acquire -n x; true) | cat; }; token=$(take | cat)`
	}
	for _, shell := range []string{"sh", "bash"} {
		for name, form := range forms {
			t.Run(shell+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newStation(t)
				cmd := clitest.Shell(t, s.command(), shell, form+"; echo \"$token\" ready $$.; read x; multilock release -n x --token \"$token\" || exit; read x")
				cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
				script := begin(t, cmd)
				script.Expect(".")
				l := s.lock("x")
				require.Equal(t, "held", l.State)
				require.True(t, strings.HasPrefix(script.Out.String(), l.Token+" ready "), script.Out.String())
				require.Equal(t, "acquire for pid "+strconv.Itoa(script.PID()), l.Command)
				_, err := script.In.Write([]byte("\n"))
				require.NoError(t, err)
				s.eventuallyFree("x")
				script.end()
				s.eventually("nobody writes there any more", func() bool { return os.RemoveAll(s.base) == nil }) // the keeper ends by itself
			})
		}
	}
}

func TestAcquireWaits(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	holder := s.hold("x")
	got := s.run("acquire", "-n", "x", "--wait", "3s")
	require.Equal(t, 124, got.code)
	require.Contains(t, got.stderr, `timed out waiting: lock "x" is held by`)
	owner := s.owner()
	waiter := s.start("acquire", "-n", "x", "--wait", "forever", "--pid", strconv.Itoa(owner.PID()))
	s.eventuallyWaiting()
	require.Zero(t, holder.end().code)
	token := strings.TrimSpace(waiter.wait().stdout)
	require.Equal(t, token, s.lock("x").Token)
}

// If a waiting acquire is terminated, no keeper remains that acquires the lock later.
func TestStoppedAcquireLeavesNoKeeper(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			holder := s.hold("x")
			waiter := s.start("acquire", "-n", "x", "--wait", "forever")
			waiter.ExpectNotice()
			waiter.Signal(sig)
			require.Empty(t, waiter.wait().stdout)
			s.eventuallyNobodyWaits()
			require.Zero(t, holder.end().code)
			require.Equal(t, "free", s.lock("x").State)
		})
	}
}

// A dead keeper sends no heartbeats, but its script still runs: that proves nothing, and the script
// continues.
func TestKilledKeeper(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	owner := s.owner()
	a := s.acquire(owner, "-n", "x", "--ttl", "1h")
	s.killKeeper(a)
	l := s.lock("x")
	require.Equal(t, "held", l.State, l.Why)
	require.Contains(t, l.Why, fmt.Sprintf("process %d (cat) is running", owner.PID()))
	require.Equal(t, 121, s.run("break", "x").code)
	require.Equal(t, ended{0, "", ""}, s.run("release", "-n", "x", "--token", a.Token))
	require.Equal(t, "free", s.lock("x").State)
}

// A keeper was stopped while its script died and another process took over the lock. When it continues, it
// leaves that lock alone.
func TestStoppedKeeperLeavesTheSuccessorAlone(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	owner := s.owner()
	a := s.acquire(owner, "-n", "x", "--ttl", "1h")
	require.NoError(t, syscall.Kill(a.Keeper, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(a.Keeper, syscall.SIGKILL) })
	owner.end()
	successor := s.acquire(s.owner(), "-n", "x", "--wait", "1m")
	require.NoError(t, syscall.Kill(a.Keeper, syscall.SIGCONT))
	s.eventually("the keeper ends", func() bool { return syscall.Kill(a.Keeper, 0) != nil })
	require.Equal(t, successor.Token, s.lock("x").Token)
	s.must("release", "-n", "x", "--token", successor.Token)
}

// killKeeper kills the keeper, and waits for its end.
func (s *station) killKeeper(a acquired) {
	s.t.Helper()
	require.NoError(s.t, syscall.Kill(a.Keeper, syscall.SIGKILL))
	s.eventually("the keeper is dead", func() bool { return syscall.Kill(a.Keeper, 0) != nil })
}

func TestDetachedLock(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	token := strings.TrimSpace(s.must("acquire", "-n", "x", "--detach", "--ttl", "1h"))
	l := s.lock("x")
	require.Equal(t, token, l.Token)
	require.Contains(t, l.Why, "held for 1h0m0s without being renewed")
	got := s.run("run", "-n", "x", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, "(detached")
	s.must("release", "-n", "x", "--token", token)
	require.Equal(t, "free", s.lock("x").State)

	s.must("acquire", "-n", "x", "--detach", "--ttl", "2s")
	s.must("run", "-n", "x", "--wait", "forever", "--", "true")
	require.Equal(t, []string{"acquired", "released", "acquired", "broken", "acquired", "released"}, happened(s.history("x")))
}

// Processes that acquire leaves running have none of its caller's files open: "finish" waits for the end of
// both pipes while the lock is held.
func TestKeeperLetsGoOfItsCaller(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	dir := t.TempDir()
	cmd := s.command("acquire", "-n", "x", "-v", "--pid", strconv.Itoa(os.Getpid()))
	cmd.Dir = dir
	got := s.finish(cmd)
	require.Zero(t, got.code)
	require.Equal(t, "multilock: took lock \"x\"\n", got.stderr)
	s.must("release", "-n", "x", "--token", strings.TrimSpace(got.stdout))
}
