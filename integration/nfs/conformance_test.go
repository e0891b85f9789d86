package nfs_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

// conformanceTTL suits an emulated machine that runs some twenty tests at once.
const conformanceTTL = 6 * time.Second

// Runs the conformance suite in one process whose sources use the next host's NFS client each time
// one is opened, so one test covers all versions and caches.
// Rule: I1, I2, silence, break, fence, commit, outcome, forget
func TestConformanceAcrossHosts(t *testing.T) {
	needLab(t)
	locktest.Run(t, fixture(func(t testing.TB) func() fslock.Options {
		p := newPlace(t)
		var opened atomic.Int64
		return func() fslock.Options {
			all := hosts()
			h := all[opened.Add(1)%int64(len(all))]
			return fslock.Options{Base: p.on(h), FS: h}
		}
	}))
}

// fixture creates places. Each source is opened with the next options that the place returns.
func fixture(options func(t testing.TB) func() fslock.Options) locktest.Fixture {
	f := fslocktest.Fixture(options)
	f.TTL = conformanceTTL
	return f
}
