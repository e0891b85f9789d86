// Package sweep injects a fault at each operation of a test in turn: at the first, then at the second,
// until the test has no further operation.
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

// exhaustive makes the sweeps try every error at every operation, and crash or stop after each operation
// as well as before the next one.
var exhaustive = flag.Bool("exhaustive", false, "sweep with all errors, before and after each operation")

// Exhaustive reports whether sweeps must be complete.
func Exhaustive() bool { return *exhaustive }

// Operations calls run for each operation of a scenario in turn, width at a time, until a run ended
// without reaching its fault: the scenario has no operation with that number. It also ends after a
// failure of any test: under -failfast no further tests run.
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

// SideBySide runs a subtest for each case, all at the same time: they mostly wait for a TTL, so the
// number of processors does not matter. It returns how many were run.
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

// Slots limits concurrency: an observer that gets no processor for long cannot distinguish a holder's
// missing heartbeats from its own delay.
type Slots chan struct{}

// Enter waits for a slot, and returns a function that releases it.
func (s Slots) Enter() (leave func()) {
	s <- struct{}{}
	return func() { <-s }
}

// Fault is the fault that an operation meets.
type Fault struct {
	Phase faultfs.Phase
	Errno syscall.Errno
}

// FaultsAt returns what a client of a network file system may return for operation n: the operation had
// no effect, or it had and the reply was lost; with the errors of a mount that gives up (EIO, ETIMEDOUT),
// of a signal (EINTR), and of a call that was executed twice or met a stale handle (ENOENT, ESTALE).
// The errors of each kind alternate, unless the sweep is exhaustive.
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

// IsLie reports whether a fault means that an operation had no effect, or only reads, and returns that an
// existing entry is gone. No correct server does that.
func (f Fault) IsLie(kind string) bool {
	if f.Errno != syscall.ENOENT && f.Errno != syscall.ESTALE {
		return false
	}
	switch kind {
	case "rename", "unlink", "rmdir": // executed twice, they find nothing the second time
		return f.Phase == faultfs.Before
	}
	return true
}

// Phases returns the phases in which to crash or stop. The state on disk after one operation is the same
// as before the next, so only an exhaustive sweep tries both.
func Phases() []faultfs.Phase {
	if *exhaustive {
		return []faultfs.Phase{faultfs.Before, faultfs.After}
	}
	return []faultfs.Phase{faultfs.Before}
}
