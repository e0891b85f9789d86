package cloudshell_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/integration/fakecloudshell/convention"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

// startScript starts a script that never gives up.
func startScript(t *testing.T, l *lab, more ...string) *locktest.Script {
	t.Helper()
	options := []string{"--reservation", sandbox, "--password", password, "--attempts", "100000"}
	return convention.Start(t, l.server, slices.Concat(options, more)...)
}

// Scripts of both versions and this library exclude each other.
func TestScriptsAndWeTakeTurns(t *testing.T) {
	for _, version := range [][]string{{"--client", "9.3"}, {"--client", "2024.1", "--owner", "driver A"}} {
		l := newLab(t, serverOptions())
		peer, src := startScript(t, l, version...), l.open(t)
		lock := try(t, src, "MUTEX", multilock.Options{})
		require.Equal(t, "denied: CloudShell API error 100: Service with given alias already exists", peer.Do("try"))
		release(t, lock)
		require.Equal(t, "acquired", peer.Do("try"))
		requireHeld(t, src, "MUTEX")
		_, err := multilock.Break(t.Context(), src, "MUTEX", multilock.BreakOptions{})
		require.ErrorIs(t, err, multilock.ErrHeld)
		require.Equal(t, "released", peer.Do("release"))
		release(t, try(t, src, "MUTEX", multilock.Options{}))
	}
}

// A script that retries its request and then waits for its own lock does not lose that lock to us.
func TestScriptThatWaitsForItself(t *testing.T) {
	l := newLab(t, serverOptions())
	peer, src := startScript(t, l, "--client", "2024.1"), l.open(t)
	l.server.Inject(fakecloudshell.At(fakecloudshell.AddService, 1, fakecloudshell.Fault{Reply: fakecloudshell.Dropped}))
	require.Contains(t, peer.Do("try"), "already exists")
	requireHeld(t, src, "MUTEX")
	_, err := multilock.Break(t.Context(), src, "MUTEX", multilock.BreakOptions{Alive: true}) // on a user's order
	require.NoError(t, err)
	release(t, try(t, src, "MUTEX", multilock.Options{}))
}

// Processes of both kinds increment a counter in a file, which loses counts if two do so at once.
//
// The server has no cache, like older ones. With a cache, a script of the first version can read an
// outdated owner and then wait for its own lock.
func TestScriptsAndWeContend(t *testing.T) {
	const rounds = 15
	opt := serverOptions()
	opt.Policy.CacheFor = -1
	l := newLab(t, opt)
	counter := worker.NewCounter(t, t.TempDir())
	var all sync.WaitGroup
	scripts := [][]string{{"--client", "9.3"}, {"--client", "2024.1", "--owner", "driver A"}, {"--client", "9.3", "--owner", "driver B"}}
	answers := make([]string, len(scripts))
	for i, version := range scripts {
		s := startScript(t, l, version...)
		all.Go(func() { answers[i] = s.Do(fmt.Sprintf("count %s %d", counter, rounds)) })
	}
	const ours = 3
	for range ours {
		src := l.open(t)
		all.Go(func() { assert.NoError(t, counter.Add(t.Context(), src, "MUTEX", rounds)) })
	}
	all.Wait()
	require.Equal(t, []string{"counted", "counted", "counted"}, answers)
	counter.Require(t, (len(scripts)+ours)*rounds)
}
