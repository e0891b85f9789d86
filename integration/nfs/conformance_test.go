package nfs_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

// conformanceTTL is long for an emulated machine that answers twenty-odd tests at once.
const conformanceTTL = 6 * time.Second

// The same suite, in one process whose sources go through another host's NFS
// client each time that one is opened: all versions and caches in one test.
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

// fixture makes places whose sources are opened with what options says each time.
func fixture(options func(t testing.TB) func() fslock.Options) locktest.Fixture {
	f := fslocktest.Fixture(options)
	f.TTL = conformanceTTL
	return f
}
