// Package sweep has a fault strike at each operation of what is tested in turn: first at the
// first one, then at the second, until there is no such operation.
package sweep

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/vfs/faultfs"
)

// exhaustive makes the sweeps meet every error at every operation, and crash or
// stop after each operation as well as before the next one.
var exhaustive = flag.Bool("exhaustive", false, "sweep with all errors, before and after each operation")

// Exhaustive says whether nothing is to be left out.
func Exhaustive() bool { return *exhaustive }

// Operations calls run for each operation of a scene in turn, as many at a
// time as width says, until a run ended without having met its fault: the scene
// has no operation of that number. It also ends with a failure, wherever that was:
// under -failfast nothing is run after one.
func Operations(t *testing.T, width int, run func(t *testing.T, n int) (ended bool)) {
	t.Helper()
	for first := 0; ; first += width {
		ended := make([]bool, width)
		numbers := make([]int, width)
		for i := range numbers {
			numbers[i] = first + i
		}
		ran := SideBySide(t, numbers, func(t *testing.T, n int) { ended[n-first] = run(t, n) })
		if ran < width || t.Failed() || slices.Contains(ended, true) {
			require.False(t, ended[0] && first == 0, "the scene has no operations")
			return
		}
	}
}

// SideBySide runs a subtest for each case, all at the same time: most of the
// time they wait for somebody's TTL, which has nothing to do with how many
// processors there are. It returns how many were run.
func SideBySide[T any](t *testing.T, cases []T, run func(*testing.T, T)) (ran int) {
	t.Helper()
	var group sync.WaitGroup
	var count atomic.Int64
	for _, c := range cases {
		group.Go(func() {
			t.Run(fmt.Sprint(c), func(t *testing.T) {
				count.Add(1)
				run(t, c)
			})
		})
	}
	group.Wait()
	return int(count.Load())
}

// Slots bounds how much goes on at a time: observers that do not get a processor
// for long cannot tell a holder's silence from their own.
type Slots chan struct{}

// Enter waits for a slot, and returns what gives it back.
func (s Slots) Enter() (leave func()) {
	s <- struct{}{}
	return func() { <-s }
}

// Fault is what strikes at an operation.
type Fault struct {
	Phase faultfs.Phase
	Errno syscall.Errno
}

// FaultsAt are what a client of a network file system may answer: nothing was
// done, or it was done and the reply is lost; with the errors of a mount that
// gives up (EIO, ETIMEDOUT), of a signal (EINTR), and of a call that was carried
// out twice or met a handle that is gone (ENOENT, ESTALE). The errors of each
// kind take turns, unless all are wanted.
func FaultsAt(n int) (all []Fault) {
	doubt := []syscall.Errno{syscall.EIO, syscall.ETIMEDOUT, syscall.EINTR}
	gone := []syscall.Errno{syscall.ENOENT, syscall.ESTALE}
	numbers := append(doubt, gone...)
	if !*exhaustive {
		numbers = []syscall.Errno{doubt[n%len(doubt)], gone[n%len(gone)]}
	}
	for _, errno := range numbers {
		all = append(all, Fault{faultfs.Before, errno}, Fault{faultfs.After, errno})
	}
	return all
}

func (f Fault) String() string { return fmt.Sprintf("%s %s", f.Phase, unix.ErrnoName(f.Errno)) }

// IsLie says of a fault that an operation was not carried out, or only asks, and answers
// that what is there is gone. No honest server does that.
func (f Fault) IsLie(kind string) bool {
	if f.Errno != syscall.ENOENT && f.Errno != syscall.ESTALE {
		return false
	}
	switch kind {
	case "rename", "unlink", "rmdir": // carried out twice, they find nothing the second time
		return f.Phase == faultfs.Before
	}
	return true
}

// Phases are when to strike where nothing is answered. What is on disk after one operation
// is what is there before the next, so that the second way is for those who do not believe
// it.
func Phases() []faultfs.Phase {
	if *exhaustive {
		return []faultfs.Phase{faultfs.Before, faultfs.After}
	}
	return []faultfs.Phase{faultfs.Before}
}
