package fslock_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// phases are when to strike. What is on disk after one operation is what is there
// before the next, so that the second way is for those who do not believe it.
func phases() []faultfs.Phase {
	if *exhaustive {
		return []faultfs.Phase{faultfs.Before, faultfs.After}
	}
	return []faultfs.Phase{faultfs.Before}
}

// A holder, contender, breaker or janitor that is killed leaves nothing that a
// later contender could not take, and nothing that anybody has to clean up by
// hand: on the same host at once, on others when the TTL has passed.
func TestCrashAtEveryOperation(t *testing.T) {
	slots := make(slots, 24)
	sideBySide(t, scenes(), func(t *testing.T, s scene) {
		for _, phase := range phases() {
			sweepOperations(t, 8, func(t *testing.T, n int) bool {
				defer slots.enter()()
				return runAndCrash(t, s, n, phase)
			})
		}
	})
}

func runAndCrash(t *testing.T, s scene, n int, phase faultfs.Phase) (ended bool) {
	base := fresh(t)
	child := startVictim(t, strike{Base: base, Scene: s.name, How: "crash", N: n, Phase: phase})
	ended = child.Await(t) != actor.Killed
	err := child.Wait()
	if ended {
		require.NoError(t, err)
	}
	for _, who := range views(t) {
		place := fresh(t)
		copyTree(t, base, place)
		lock := take(t, place, s, who)
		if s.records {
			requireLedgerWorks(t, lock)
		}
		if s.lists != nil {
			other := open(t, fslock.Options{Base: place, FS: sharedFS(), Self: who})
			require.Contains(t, s.lists, listThere(t, other))
			require.NoError(t, other.Retract(t.Context()))
		}
		giveBack(t, lock)
		requireTidy(t, place)
	}
	return ended
}

// copyTree copies directories and files with their modes and times.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	var copied []func() // times last: making a file changes its directory's
	require.NoError(t, filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		copied = append(copied, func() { require.NoError(t, os.Chtimes(target, info.ModTime(), info.ModTime())) })
		if e.IsDir() {
			return os.MkdirAll(target, 0o777)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode())
	}))
	for _, setTimes := range copied {
		setTimes()
	}
}
