package faultfs_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"three": makeThree})
	os.Exit(m.Run())
}

// ending is a process that creates three directories, with its fate at the second one.
type ending struct {
	Base  string
	Stops bool // instead of being killed
	Phase faultfs.Phase
}

func makeThree() error {
	var e ending
	if err := actor.Part(&e); err != nil {
		return err
	}
	faulty := faultfs.New(vfs.OS{}, nil)
	dir, err := faulty.OpenDir(e.Base)
	if err != nil {
		return err
	}
	faulty.Inject(faultfs.CrashAt(1, e.Phase))
	if e.Stops {
		faulty.Inject(faultfs.StopAt(1, e.Phase))
	}
	for i := range 3 {
		if err := dir.Mkdir(fmt.Sprint(i), 0o777); err != nil {
			return err
		}
	}
	return nil
}

// A process that is killed before or after an operation has not executed it, or has. A stopped process
// continues from there.
func TestCrashAtAndStopAt(t *testing.T) {
	for phase, left := range map[faultfs.Phase]int{faultfs.Before: 1, faultfs.After: 2} {
		for fate, stops := range map[actor.Fate]bool{actor.Killed: false, actor.Stopped: true} {
			base := t.TempDir()
			child := actor.Prepare(t, "three", ending{base, stops, phase})
			child.Start(t)
			require.Equal(t, fate, child.Await(t))
			requireEntries(t, base, left)
			if stops {
				child.GoOn(t)
				requireEntries(t, base, 3)
			}
		}
	}
}

func requireEntries(t *testing.T, base string, want int) {
	t.Helper()
	entries, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Len(t, entries, want)
}
