package fslock_test

import (
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var (
	longStress = flag.Bool("long", false, "stress: 16 processes that take the lock 32,000 times, instead of 8 and 100 times")
	seedStress = flag.Uint64("seed", 0, "stress: the seed of what happens to whom, 0 for a new one")
)

// Processes on several "hosts" take turns with one lock, while they are killed and stopped at random
// moments. No call fails, and nothing is left over.
// Rule: I1, I3, stopped, fence
func TestStress(t *testing.T) {
	size, turns := 8, 100
	if *longStress {
		size, turns = 16, 32000
	}
	base := fresh(t)
	crew := worker.Crew{TB: t, Place: base, TTL: 1500 * time.Millisecond, Seed: *seedStress}
	crew.Work(size, turns)
	for _, e := range crew.Judge(open(t, fslock.Options{Base: base})) {
		require.NotEqual(t, locktest.Unsure, e.Kind, "%+v", e)
	}
	requireTidy(t, base)
}

func playWorker() error {
	return worker.Play(func(base string, self process.Identity) (source.Source, error) {
		return fslock.Open(fslock.Options{Base: base, Self: self})
	})
}
