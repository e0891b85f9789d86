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

// The server restarts, and for v4 it has a grace period then, in which nothing is opened, removed
// or renamed. A heartbeat needs none of that: the holder sends one before the period is over, and
// stays the holder.
// Rule: heartbeat
func TestHeartbeatInTheGracePeriod(t *testing.T) {
	eachVersionAtLength(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		lease := plant(t, p.source(t, h), "job", long)
		longGrace(t)
		dead := addHost(t, "dead", "4.2", "hard")
		newActor(t, dead, p).must(t, order{Do: "look", Name: "job"})
		lab(t, "host", "crash", dead.name) // a client that does not reclaim makes the period last
		lab(t, "server", "restart")
		require.NoError(t, lease.Renew(within(t)))
		require.True(t, inGrace(t), "the grace period was over: nothing is shown")
		endGrace(t)
		requireHeldBy(t, p.source(t, others[0]), "job", lease.Record().Token)
		require.NoError(t, lease.Release(within(t)))
		require.NoError(t, try(t, p.source(t, others[0]), "job", longOptions()).Release(within(t)))
	})
}

// longGrace makes the next grace period last for as long as a test may take.
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

// inGrace says whether nfsd is in its grace period.
func inGrace(t testing.TB) bool {
	t.Helper()
	ended, err := os.ReadFile(graceFile)
	require.NoError(t, err)
	return string(ended) == "N\n"
}

// outageTTL leaves a host, once the server is back, enough time to connect to it
// before its silence is believed: one and a half heartbeats.
const outageTTL = 20 * time.Second

// The server is away for longer than the TTL while another process waits for the lock. The holder
// cannot know whether it still has it, so its validity ends. But it lives and goes on renewing,
// and the lock stays in place until it is released: an outage does not count as the holder's
// silence.
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

// An export that answers before anything is on disk forgets a lock when it loses its power. The
// holder notices at its next heartbeat; another may take the lock before that. What the server's
// disk has got by itself within those moments shows nothing: then there is another lock.
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
		require.Empty(t, p.entries(t, fslock.DefaultGroup, name), "the lock is still there: nothing is shown")
		successor := acquire(t, p.source(t, others[0]), name, longOptions())
		require.Contains(t, holder.do(t, order{Do: "await loss"}).Error, "the lock was broken or removed")
		require.NoError(t, successor.Verify(within(t)))
		require.Equal(t, successor.Record().Token, p.record(t, name).Token)
	})
}

// The server may forget a rename alone: of a lock that was staged long before, as a waiter's is,
// and so was on the disk. Then the lock is whole, but not in its place. Its holder notices as
// well, at its first heartbeat or at one that rests on the times that those before have left, and
// draws no fencing number.
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
		require.Len(t, p.entries(t, ".multilock", "staging"), len(leases), "the locks are not where they were staged: nothing is shown")
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

// A sync export does not: what was acknowledged is there after the power cut.
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

// A v4 client that reads the lock file may be given a delegation for it, and dies with it. A
// breaker waits until the server takes the delegation back, which it does after a lease, and gets
// through.
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

// requireDelegation makes a reader open the lock file until it is given a delegation with
// it. A server that still has the file open for a v3 client that wrote it, as it does for
// some seconds, gives none.
func requireDelegation(t *testing.T, reader remote, lockFile string) {
	t.Helper()
	eventually(t, "the reader is given a delegation", func() bool {
		reader.must(t, order{Do: "keep open", Path: lockFile})
		if delegated(t, filepath.Base(lockFile)) {
			return true
		}
		reader.must(t, order{Do: "close"})
		time.Sleep(time.Second)
		return false
	})
}

// delegated says whether the server counts a delegation of a file of that name.
func delegated(t testing.TB, name string) bool {
	t.Helper()
	clients, err := filepath.Glob("/proc/fs/nfsd/clients/*/states")
	require.NoError(t, err)
	for _, path := range clients {
		states, err := os.ReadFile(path)
		if err != nil {
			continue // that client has just gone
		}
		for _, state := range strings.Split(string(states), "\n") {
			if strings.Contains(state, "type: deleg") && strings.Contains(state, name) {
				return true
			}
		}
	}
	return false
}
