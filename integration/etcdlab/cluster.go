package etcdlab

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/multilock/go/integration/engine"
	"github.com/multilock/go/internal/testkit/actor"
)

// Cluster is an etcd cluster on the loopback interface.
type Cluster struct {
	testing.TB
	Members []*Member
	Client  *clientv3.Client // for inspecting the store directly
}

// Member is a member of the cluster, and the process that runs it.
type Member struct {
	part
	*actor.Actor
	id uint64
}

// Start starts a cluster. The test's TestMain must play Role.
func Start(t testing.TB, size int) *Cluster {
	t.Helper()
	return start(t, size, nil, 0)
}

// StartSmall starts a cluster whose first member has a store limited to quota bytes.
func StartSmall(t testing.TB, size int, quota int64) *Cluster {
	t.Helper()
	return start(t, size, nil, quota)
}

// Fill fills the first member's store of a small cluster with keys below a prefix.
func (c *Cluster) Fill(prefix string) {
	c.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{c.Members[0].Client}, Logger: zap.NewNop()})
	require.NoError(c, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i := 0; err == nil || !strings.Contains(err.Error(), "space exceeded"); i++ {
		require.NoError(c, ctx.Err(), "the store does not fill up: %v", err) // a busy server may time out in between
		_, err = client.Put(ctx, fmt.Sprint(prefix, i), strings.Repeat("x", 1<<20))
	}
}

// Empty makes room in a full store: it removes all keys with the prefix.
func (c *Cluster) Empty(prefix string) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	resp, err := c.Client.Delete(ctx, prefix, clientv3.WithPrefix())
	require.NoError(c, err)
	_, err = c.Client.Compact(ctx, resp.Header.Revision, clientv3.WithCompactPhysical())
	require.NoError(c, err)
	for _, m := range c.Members {
		_, err = c.Client.Defragment(ctx, m.Client)
		require.NoError(c, err)
	}
	_, err = c.Client.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	require.NoError(c, err)
}

// StartSecure starts a cluster that requires TLS and client certificates signed by certs.
func StartSecure(t testing.TB, size int, certs *Certs) *Cluster {
	t.Helper()
	return start(t, size, certs, 0)
}

func start(t testing.TB, size int, certs *Certs, quota int64) *Cluster {
	t.Helper()
	c := &Cluster{TB: t}
	var cluster []string
	for i := range size {
		host := "127.0.0.1" // the host in the certificate
		if certs == nil {
			host = engine.OwnHost()
		}
		m := &Member{part: part{Name: fmt.Sprint("m", i), Dir: t.TempDir(), Client: engine.Free(t, host), Peer: engine.Free(t, host)}}
		cluster = append(cluster, m.Name+"=http://"+m.Peer)
		c.Members = append(c.Members, m)
	}
	c.Members[0].Quota = quota
	behind := clientv3.Config{Endpoints: strings.Split(c.Hosts(), ","), Logger: zap.NewNop()}
	if certs != nil {
		behind.TLS = certs.config()
	}
	for _, m := range c.Members {
		m.Cluster = strings.Join(cluster, ",")
		if certs != nil {
			m.Certs = certs.Dir
		}
		c.begin(m)
	}
	for _, m := range c.Members {
		c.identify(m)
	}
	var err error
	c.Client, err = clientv3.New(behind)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Client.Close() })
	c.Ready()
	return c
}

// begin starts a member's process. identify waits until the member works.
func (c *Cluster) begin(m *Member) {
	m.Actor = actor.Prepare(c, Role, m.part)
	m.Start(c)
}

func (c *Cluster) identify(m *Member) {
	c.Helper()
	m.id = m.tell(c, order{}).ID
}

// Ready waits until the cluster works.
func (c *Cluster) Ready() {
	c.Helper()
	require.Eventually(c, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.Client.Get(clientv3.WithRequireLeader(ctx), "ready")
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}

// Hosts returns the addresses of all members.
func (c *Cluster) Hosts() string {
	var hosts []string
	for _, m := range c.Members {
		hosts = append(hosts, m.Client)
	}
	return strings.Join(hosts, ",")
}

// URL returns a source's URL.
func (c *Cluster) URL(prefix string) string { return "etcd://" + c.Hosts() + "/" + prefix }

// Leader returns the current leader, as reported by a working member.
func (c *Cluster) Leader() *Member {
	c.Helper()
	var leader *Member
	require.Eventually(c, func() bool {
		for _, m := range c.Members {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			status, err := c.Client.Status(ctx, m.Client)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				leader = m
				return true
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond)
	return leader
}

// Kill crashes a member. Restart starts it again.
func (c *Cluster) Kill(m *Member) { m.End() }

// Restart starts killed members and waits for them, so a majority has to work afterwards.
func (c *Cluster) Restart(members ...*Member) {
	c.Helper()
	for _, m := range members {
		c.begin(m)
	}
	for _, m := range members {
		c.identify(m)
	}
}

// Pause stops a member for a while.
func (c *Cluster) Pause(m *Member, pause time.Duration) {
	c.Helper()
	m.Signal(c, syscall.SIGSTOP)
	time.Sleep(pause)
	m.Signal(c, syscall.SIGCONT)
}

// Step sets a member's clock to the true time plus beside. The machine's clock is not changed.
func (c *Cluster) Step(m *Member, beside time.Duration) {
	c.Helper()
	require.NoError(c, stepClock(m.Process, beside))
	require.WithinDuration(c, time.Now().Add(beside), m.tell(c, order{}).Time, time.Minute, "the clock of a member")
}

// Isolate cuts a member off from all others, until Mend.
func (c *Cluster) Isolate(m *Member) { c.cut(m, func(ids ...uint64) order { return order{Cut: ids} }) }

// Mend reconnects a member after Isolate.
func (c *Cluster) Mend(m *Member) { c.cut(m, func(ids ...uint64) order { return order{Mend: ids} }) }

func (c *Cluster) cut(m *Member, what func(ids ...uint64) order) {
	c.Helper()
	var others []uint64
	for _, other := range c.Members {
		if other != m {
			others = append(others, other.id)
			other.tell(c, what(m.id))
		}
	}
	m.tell(c, what(others...))
}

// tell sends an order to a member and returns its answer.
func (m *Member) tell(t testing.TB, o order) (a answer) {
	t.Helper()
	m.Tell(t, o)
	m.Hear(t, &a)
	return a
}

// Count returns the number of keys with a prefix.
func (c *Cluster) Count(t testing.TB, prefix string) int {
	t.Helper()
	resp, err := c.Client.Get(context.Background(), prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	return int(resp.Count)
}
