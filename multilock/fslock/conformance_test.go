package fslock_test

import (
	"testing"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

// Rule: I1, I2, process-gone, silence, job, break, fence, commit, outcome, forget
func TestConformance(t *testing.T) {
	t.Parallel()
	locktest.Run(t, fixture(fslock.Options{}))
}

// Rule: I1, python
func TestConformanceWithLegacyPeers(t *testing.T) {
	t.Parallel()
	locktest.Run(t, fixture(fslock.Options{LegacyPeers: true}))
}

// fixture makes places in their own directories.
func fixture(opt fslock.Options) locktest.Fixture {
	return fslocktest.Fixture(func(t testing.TB) func() fslock.Options {
		opt := opt
		opt.Base = t.TempDir()
		return func() fslock.Options { return opt }
	})
}

// BenchmarkLock measures the file system of the directory for temporary files:
// set TMPDIR to measure another.
func BenchmarkLock(b *testing.B) { locktest.Benchmark(b, fixture(fslock.Options{})) }
