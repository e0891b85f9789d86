//go:build linux

package fslock_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// overQuota fails the operations of one kind as a disk quota does.
func overQuota(kind string) faultfs.Injector {
	return func(op faultfs.Op) error {
		if op.Kind == kind && op.Phase == faultfs.Before {
			return syscall.EDQUOT
		}
		return nil
	}
}

// Wherever on the way to the lock a quota is met, the attempt is taken back and
// says what was met.
func TestDiskQuota(t *testing.T) {
	for _, kind := range []string{"mkdir", "create", "write", "rename"} {
		for _, legacy := range []bool{false, true} {
			base := used(t)
			opt := fslock.Options{Base: base, Group: "used", LegacyPeers: legacy, FS: faultfs.New(vfs.OS{}, overQuota(kind))}
			if legacy && kind == "rename" {
				continue // its empty directory stands already, and is cleared by age
			}
			refused(t, base, syscall.EDQUOT, []string{"quota is used up"}, attempt(t, opt, "job", source.Patience{}))
		}
	}
}

// An NFS client can be told of a quota as late as when it syncs or closes.
func TestDiskQuotaMetLate(t *testing.T) {
	for _, kind := range []string{"sync", "file.close"} {
		base := used(t)
		faults := faultfs.New(vfs.OS{}, nil)
		faults.Describe(vfs.FileSystem{Type: "test"})
		opt := fslock.Options{Base: base, Group: "used", FS: faults}
		lock := acquire(t, open(t, opt), "job", multilock.Options{}) // also tests this kind of filesystem
		require.NoError(t, lock.Release(t.Context()))
		faults.Inject(overQuota(kind))
		refused(t, base, syscall.EDQUOT, []string{"quota is used up"}, attempt(t, opt, "job", source.Patience{}))
	}
}
