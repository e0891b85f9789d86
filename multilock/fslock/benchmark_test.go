package fslock_test

import (
	"testing"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// BenchmarkLock measures the file system of the directory for temporary files:
// set TMPDIR to measure another.
func BenchmarkLock(b *testing.B) { locktest.Benchmark(b, fixture(fslock.Options{})) }
