//go:build linux

package stalefs_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
)

// On a hard mount a call waits for the server, and is carried out then.
func TestHardMountWaits(t *testing.T) {
	outages := map[string]struct{ begin, end func(*cluster) }{
		"server": {func(c *cluster) { c.server.Stop() }, func(c *cluster) { c.server.Start() }},
		"path":   {func(c *cluster) { c.hosts[0].Cut() }, func(c *cluster) { c.hosts[0].Heal() }},
	}
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 1, patient)
			dir := c.hosts[0].dir(t)
			require.ErrorIs(t, exists(dir, "new"), syscall.ENOENT)
			outage.begin(c)
			answered := make(chan error, 1)
			go func() { answered <- dir.Mkdir("new", 0o777) }()
			select {
			case err := <-answered:
				require.Fail(t, "answered without a server", "%v", err)
			case <-time.After(50 * time.Millisecond):
			}
			require.Empty(t, c.names(t))
			outage.end(c)
			require.NoError(t, <-answered)
			require.Equal(t, []string{"new"}, c.names(t))
		})
	}
}

// On a soft mount it fails after a while, and what is remembered still counts.
func TestSoftMountGivesUp(t *testing.T) {
	opt := patient
	opt.Soft = time.Millisecond
	c := newCluster(t, 1, opt)
	dir := c.hosts[0].dir(t)
	require.ErrorIs(t, exists(dir, "remembered"), syscall.ENOENT)
	c.server.Stop()
	require.ErrorIs(t, dir.Mkdir("new", 0o777), syscall.ETIMEDOUT)
	require.ErrorIs(t, dir.Touch(), syscall.ETIMEDOUT)
	require.ErrorIs(t, statError(dir), syscall.ETIMEDOUT)
	require.ErrorIs(t, exists(dir, "remembered"), syscall.ENOENT)
	c.server.Start()
	require.Empty(t, c.names(t))
	require.NoError(t, dir.Mkdir("new", 0o777))
}

// One host that is cut off keeps no other from working.
func TestPartition(t *testing.T) {
	c := newCluster(t, 2, stalefs.Options{Soft: time.Millisecond})
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	c.hosts[0].Cut()
	require.ErrorIs(t, a.Mkdir("new", 0o777), syscall.ETIMEDOUT)
	require.NoError(t, b.Mkdir("new", 0o777))
	c.hosts[0].Heal()
	require.ErrorIs(t, a.Mkdir("new", 0o777), syscall.EEXIST)
}
