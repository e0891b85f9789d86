package nfs_test

import (
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/locktest"
)

// conformanceTTL is long for an emulated machine that answers twenty-odd tests at once.
const conformanceTTL = 6 * time.Second

// The suite that every lock source passes, in a process on each host. A short run
// leaves it to TestConformanceAcrossHosts.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	eachVersion(t, func(t *testing.T, h host, _ []host) {
		p := newPlace(t)
		self, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command("on", h.name, self, "-test.paniconexit0", "-test.run", "^TestConformanceHere$", "-test.v", "-test.parallel", "16")
		cmd.Env = append(os.Environ(), roleVariable+"=conformance", "TMPDIR="+p.on(h))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: TestConformanceHere/Names")
	})
}

// TestConformanceHere is what TestConformance runs on a host.
func TestConformanceHere(t *testing.T) {
	if os.Getenv(roleVariable) != "conformance" {
		t.Skip("runs on a host, as part of TestConformance")
	}
	locktest.Run(t, fixture(func(t testing.TB) func() fslock.Options {
		base := t.TempDir()
		return func() fslock.Options { return fslock.Options{Base: base} }
	}))
}

// The same suite, in one process whose sources go through another host's NFS
// client each time that one is opened: all versions and caches in one test.
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
