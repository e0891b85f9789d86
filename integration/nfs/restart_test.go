package nfs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// After a restart, a v4 server has a grace period in which nothing can be opened, removed or
// renamed. A heartbeat needs none of these: the holder sends one during the grace period and keeps
// the lock.
// Rule: heartbeat
func TestHeartbeatInTheGracePeriod(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lease := plant(t, p.source(t, h), "job", long)
		longGrace(t)
		dead := addHost(t, "dead", "4.2", "hard")
		newActor(t, dead, p).must(t, order{Do: "look", Name: "job"})
		lab(t, "host", "crash", dead.name) // a client that does not reclaim its state prolongs the grace period
		lab(t, "server", "restart")
		require.NoError(t, lease.Renew(within(t)))
		require.True(t, inGrace(t), "inconclusive: the grace period was over")
		endGrace(t)
		requireHeldBy(t, p.source(t, others[0]), "job", lease.Record().Token)
		require.NoError(t, lease.Release(within(t)))
		require.NoError(t, try(t, p.source(t, others[0]), "job", longOptions()).Release(within(t)))
	})
}

// longGrace makes the next grace period outlast a test.
func longGrace(t testing.TB) {
	t.Helper()
	lab(t, "server", "grace", "300")
	t.Cleanup(func() {
		lab(t, "server", "grace", "10")
		lab(t, "server", "restart")
		endGrace(t)
	})
}

const graceFile = "/proc/fs/nfsd/v4_end_grace"

// endGrace ends the grace period, if there is one.
func endGrace(t testing.TB) {
	t.Helper()
	require.NoError(t, os.WriteFile(graceFile, []byte("Y"), 0))
}

// inGrace reports whether nfsd is in its grace period.
func inGrace(t testing.TB) bool {
	t.Helper()
	ended, err := os.ReadFile(graceFile)
	require.NoError(t, err)
	return string(ended) == "N\n"
}

// outageTTL gives a host one and a half heartbeats to reconnect, once the server is back, before
// its lock counts as stale.
const outageTTL = 20 * time.Second

// The server is down for longer than the TTL while another process waits for the lock. The holder
// cannot know whether it still has the lock, so its validity ends. But it is alive and keeps
// renewing, and the lock stays in place until it is released: the time of an outage does not count
// as missing heartbeats.
// Rule: validity, silence
func TestOutageLongerThanTheTTL(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	needLab(t)
	type pair struct {
		place
		holder, waiter remote
		token          string
	}
	var pairs []*pair
	for i, h := range hosts() {
		p := &pair{place: newPlace(t)}
		p.holder, p.waiter = newActor(t, h, p.place), newActor(t, hosts()[(i+1)%3], p.place)
		p.token = p.holder.must(t, order{Do: "acquire", Name: "job", TTL: outageTTL}).Token
		p.waiter.Tell(t, order{Do: "acquire", Name: "job", TTL: long})
		eventually(t, "the waiter has seen the lock", func() bool { return len(p.entries(t, ".multilock", "staging")) > 0 })
		pairs = append(pairs, p)
	}
	lab(t, "server", "stop")
	outage := time.NewTimer(outageTTL * 5 / 4)
	for _, p := range pairs {
		require.Contains(t, p.holder.do(t, order{Do: "await loss"}).Error, "no renewal was confirmed")
	}
	<-outage.C
	startServer(t)
	for _, p := range pairs {
		sign := p.heartbeat(t, "job")
		eventually(t, "the holder sends heartbeats again", func() bool { return p.heartbeat(t, "job").After(sign) })
	}
	for _, p := range pairs {
		require.Equal(t, p.token, p.record(t, "job").Token)
		require.Contains(t, p.holder.do(t, order{Do: "release"}).Error, "no renewal was confirmed")
		require.NotEmpty(t, p.waiter.done(t).Token)
		require.Empty(t, takenOver(t, p.source(t, hosts()[0])))
		p.waiter.must(t, order{Do: "release"})
		p.requireEmpty(t)
	}
}

// An export that replies before data is on disk loses a lock in a power cut. The holder notices at
// its next heartbeat; another process may acquire the lock before that. If the lock reached the
// server's disk before the power cut, the attempt is inconclusive and the test tries another lock.
// Rule: heartbeat, loss
func TestAsyncExportForgetsALock(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		require.NoError(t, try(t, p.source(t, h), "first", longOptions()).Release(within(t)))
		lab(t, "sync")
		lab(t, "server", "export", "async")
		t.Cleanup(func() { lab(t, "server", "export", "sync") })
		var holder remote
		name := ""
		for n := 0; n < tries && (n == 0 || len(p.entries(t, fslock.DefaultGroup, name)) > 0); n++ {
			holder, name = newActor(t, h, p), fmt.Sprint("job", n)
			holder.must(t, order{Do: "acquire", Name: name, TTL: outageTTL})
			lab(t, "server", "crash")
			wakeClients()
		}
		require.Empty(t, p.entries(t, fslock.DefaultGroup, name), "inconclusive: the lock is still there")
		successor := acquire(t, p.source(t, others[0]), name, longOptions())
		require.Contains(t, holder.do(t, order{Do: "await loss"}).Error, "the lock was broken or removed")
		require.NoError(t, successor.Verify(within(t)))
		require.Equal(t, successor.Record().Token, p.record(t, name).Token)
	})
}

// The server may lose only the rename, if the lock was staged long before, as a waiter's is, and
// has reached the disk. The lock is then complete, but still in staging. Its holder notices this
// too, at its first heartbeat or at one that relies on the times left by earlier ones, and gets no
// fencing number.
// Rule: heartbeat, fence, loss
func TestAsyncExportForgetsARename(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		src := p.source(t, h)
		require.NoError(t, try(t, src, "first", longOptions()).Release(within(t)))
		lab(t, "server", "export", "async")
		t.Cleanup(func() { lab(t, "server", "export", "sync") })
		contenders := map[string]source.Contender{}
		for _, name := range []string{"silent", "beating", "fencing"} {
			c, err := src.Contend(within(t), name, source.Claim{TTL: long, Heartbeat: long / 10}, multilock.StalePolicy{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = c.Close() })
			contenders[name] = c
		}
		lab(t, "sync")
		leases := map[string]source.Lease{}
		for name, c := range contenders {
			lease, err := c.Try(within(t))
			require.NoError(t, err)
			leases[name] = lease
		}
		for range 2 {
			require.NoError(t, leases["beating"].Renew(within(t)))
		}
		lab(t, "server", "crash")
		wakeClients()
		require.Len(t, p.entries(t, ".multilock", "staging"), len(leases), "inconclusive: the locks are not in staging")
		for name, lease := range leases {
			successor := acquire(t, p.source(t, others[0]), name, longOptions())
			if name == "fencing" {
				number, err := lease.Fence(within(t))
				require.ErrorIs(t, err, multilock.ErrLost)
				require.Zero(t, number)
			}
			require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost, "%s", name)
			require.NoError(t, successor.Verify(within(t)))
		}
	})
}

// With a sync export, a lock that was acknowledged is still there after the power cut.
// Rule: stage, rename
func TestSyncExportKeepsALock(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lease := plant(t, p.source(t, h), "job", long)
		lab(t, "server", "crash")
		wakeClients()
		require.NoError(t, lease.Renew(within(t)))
		requireHeldBy(t, p.source(t, others[0]), "job", lease.Record().Token)
		require.NoError(t, lease.Release(within(t)))
		p.requireEmpty(t)
	})
}

// A v4 client that reads the lock file may be granted a delegation, and die with it. A breaker
// waits until the server revokes the delegation after a lease period, and then succeeds.
// Rule: break
func TestDeadReadersDelegation(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute for each version")
	}
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lease := plant(t, p.source(t, others[0]), "job", long)
		reader := addHost(t, "reader", "4.2", "hard")
		requireDelegation(t, newActor(t, reader, p), p.on(reader, fslock.DefaultGroup, "job", "job.locked"))
		lab(t, "host", "crash", reader.name)

		start := time.Now()
		breakAlive(t, p.source(t, h))
		t.Logf("the break took %s", time.Since(start).Round(time.Millisecond))
		require.ErrorIs(t, lease.Renew(within(t)), multilock.ErrLost)
		require.NoError(t, try(t, p.source(t, h), "job", longOptions()).Release(within(t)))
		p.requireEmpty(t)
	})
}

// requireDelegation makes a reader open the lock file until the server grants a delegation. For
// some seconds the server keeps a file open for the v3 client that wrote it, and grants none.
func requireDelegation(t *testing.T, reader remote, lockFile string) {
	t.Helper()
	eventually(t, "the server grants the reader a delegation", func() bool {
		reader.must(t, order{Do: "keep open", Path: lockFile})
		if delegated(t, filepath.Base(lockFile)) {
			return true
		}
		reader.must(t, order{Do: "close"})
		time.Sleep(time.Second)
		return false
	})
}

// delegated reports whether the server lists a delegation for a file of that name.
func delegated(t testing.TB, name string) bool {
	t.Helper()
	clients, err := filepath.Glob("/proc/fs/nfsd/clients/*/states")
	require.NoError(t, err)
	for _, path := range clients {
		states, err := os.ReadFile(path)
		if err != nil {
			continue // the client has just disconnected
		}
		for _, state := range strings.Split(string(states), "\n") {
			if strings.Contains(state, "type: deleg") && strings.Contains(state, name) {
				return true
			}
		}
	}
	return false
}
