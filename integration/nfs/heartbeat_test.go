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

// serverTick is longer than a server takes to give a change another time than the one before.
const serverTick = 20 * time.Millisecond

// beating is a lease that has sent two heartbeats. The next one rests on the times
// that the second left.
func beating(t *testing.T, src *fslock.Source) source.Lease {
	t.Helper()
	lease := plant(t, src, "job", long)
	for range 2 {
		require.NoError(t, lease.Renew(within(t)))
	}
	time.Sleep(serverTick)
	return lease
}

// removeLockFile is a breaker that dies between its two removals.
func removeLockFile(t *testing.T, p place, h host) {
	t.Helper()
	require.NoError(t, p.dir(t, h).Unlink(fslock.DefaultGroup+"/job/job.locked"))
}

// A holder whose lock another host breaks learns it at its next heartbeat, which is no more than
// a look at the times of the directory and a touch.
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

// The lock file goes between a holder's look and its touch, and the breaker dies before it
// removes the directory. The lock is free until another takes it, and then the holder learns it.
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
		require.NoError(t, lease.Renew(within(t)), "this is what it cannot see")
		faulty.Inject(nil)
		successor := plant(t, p.source(t, others[1]), "job", long)
		require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
		require.NoError(t, successor.Renew(within(t)))
	})
}
