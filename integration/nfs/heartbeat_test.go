package nfs_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// serverTick is longer than the granularity of the server's timestamps.
const serverTick = 20 * time.Millisecond

// beating returns a lease that has sent two heartbeats. Its next heartbeat relies on the times left
// by the second.
func beating(t *testing.T, src *fslock.Source) source.Lease {
	t.Helper()
	lease := plant(t, src, "job", long)
	for range 2 {
		require.NoError(t, lease.Renew(within(t)))
	}
	time.Sleep(serverTick)
	return lease
}

// removeLockFile acts like a breaker that dies between its two removals.
func removeLockFile(t *testing.T, p place, h host) {
	t.Helper()
	require.NoError(t, p.dir(t, h).Unlink(fslock.DefaultGroup+"/job/job.locked"))
}

// A holder whose lock is broken by another host notices at its next heartbeat, which only checks
// the times of the directory and touches it.
// Rule: heartbeat, loss
func TestHeartbeatOfABrokenLock(t *testing.T) {
	for what, harm := range map[string]func(t *testing.T, p place, by host){
		"half broken": removeLockFile,
		"broken": func(t *testing.T, p place, by host) {
			breakAlive(t, p.source(t, by))
		},
		"broken and taken": func(t *testing.T, p place, by host) {
			src := p.source(t, by)
			breakAlive(t, src)
			plant(t, src, "job", long)
		},
	} {
		t.Run(what, func(t *testing.T) {
			eachVersion(t, func(t *testing.T, h host, others []host) {
				p := newPlace(t)
				lease := beating(t, p.source(t, h))
				harm(t, p, others[0])
				require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
			})
		})
	}
}

// The lock file is removed between a holder's check and its touch, and the breaker dies before it
// removes the directory. The lock is free until another process acquires it, and only then does the
// holder notice.
// Rule: heartbeat
func TestLockIsHalfBrokenBeforeTheTouch(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		faulty := faultfs.New(h, nil)
		lease := beating(t, p.sourceThrough(t, h, faulty))
		faulty.Inject(func(op faultfs.Op) error {
			if op.Kind == "touch" && op.Phase == faultfs.Before {
				removeLockFile(t, p, others[0])
			}
			return nil
		})
		require.NoError(t, lease.Renew(within(t)), "the holder cannot see this yet")
		faulty.Inject(nil)
		successor := plant(t, p.source(t, others[1]), "job", long)
		require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
		require.NoError(t, successor.Renew(within(t)))
	})
}
