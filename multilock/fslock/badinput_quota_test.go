//go:build linux

package fslock_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// Wherever on the way to the lock a quota is met, the attempt is taken back and says what
// was met. An NFS client can be told of it as late as when it syncs or closes.
func TestDiskQuota(t *testing.T) {
	for kind, legacies := range map[string][]bool{
		"mkdir": {false, true}, "opendurable": {false, true}, "write": {false, true}, "sync": {false}, "file.close": {false},
		"rename": {false}, // with legacy peers its empty directory stands already, and is cleared by age
	} {
		for _, legacy := range legacies {
			base, faults := used(t), sharedFS()
			opt := fslock.Options{Base: base, Group: "used", LegacyPeers: legacy, FS: faults}
			lock := acquire(t, open(t, opt), "job", multilock.Options{}) // also tests this kind of filesystem
			require.NoError(t, lock.Release(t.Context()))
			faults.Inject(denying(kind, syscall.EDQUOT, -1))
			refused(t, base, syscall.EDQUOT, []string{"quota is used up"}, attempt(t, opt, "job", source.Patience{}))
		}
	}
}
