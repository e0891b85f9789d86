//go:build linux

package stalefs_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock/vfs"
)

// change is a modifying call, and the check whether it was executed.
type change struct {
	kind    stalefs.Kind
	again   error // the error when it is executed a second time
	prepare func(t *testing.T, c *cluster)
	call    func(dir vfs.Dir) error
	done    func(c *cluster) bool
}

func changes() []change {
	nothing := func(*testing.T, *cluster) {}
	makeDir := func(t *testing.T, c *cluster) { require.NoError(t, os.Mkdir(c.there("old"), 0o777)) }
	makeFile := func(t *testing.T, c *cluster) { require.NoError(t, os.WriteFile(c.there("old"), nil, 0o666)) }
	present := func(name string) func(*cluster) bool {
		return func(c *cluster) bool { _, err := os.Stat(c.there(name)); return err == nil }
	}
	absent := func(name string) func(*cluster) bool {
		return func(c *cluster) bool { _, err := os.Stat(c.there(name)); return os.IsNotExist(err) }
	}
	return []change{
		{stalefs.Mkdir, syscall.EEXIST, nothing, func(d vfs.Dir) error { return d.Mkdir("new", 0o777) }, present("new")},
		{stalefs.Create, syscall.EEXIST, nothing, createEmpty, present("new")},
		{stalefs.Rename, syscall.ENOENT, makeDir, func(d vfs.Dir) error { return d.Rename("old", d, "new") }, present("new")},
		{stalefs.Remove, syscall.ENOENT, makeFile, func(d vfs.Dir) error { return d.Unlink("old") }, absent("old")},
		{stalefs.Rmdir, syscall.ENOENT, makeDir, func(d vfs.Dir) error { return d.Rmdir("old") }, absent("old")},
		{stalefs.SetAttr, nil, makeOld, vfs.Dir.Touch, func(c *cluster) bool {
			info, err := os.Stat(c.stored)
			return err == nil && info.ModTime().After(longAgo())
		}},
	}
}

func createEmpty(d vfs.Dir) error {
	f, err := d.Create("new", 0o666)
	if err != nil {
		return err
	}
	return f.Close()
}

func longAgo() time.Time { return time.Unix(1, 0) }

func makeOld(t *testing.T, c *cluster) {
	require.NoError(t, os.Chtimes(c.stored, longAgo(), longAgo()))
}

// Every fault has its documented effect and reply.
// Rule: none (simulated client)
func TestLostReplies(t *testing.T) {
	for _, ch := range changes() {
		for _, f := range []struct {
			fault  stalefs.Fault
			answer error
			atOnce bool
			ever   bool
		}{
			{stalefs.Fault{Outcome: stalefs.Retransmitted}, ch.again, true, true},
			{stalefs.Fault{Outcome: stalefs.Lost, Errno: syscall.EIO}, syscall.EIO, true, true},
			{stalefs.Fault{Outcome: stalefs.Lost, Errno: syscall.ETIMEDOUT}, syscall.ETIMEDOUT, true, true},
			{stalefs.Fault{Outcome: stalefs.Dropped, Errno: syscall.EIO}, syscall.EIO, false, false},
			{stalefs.Fault{Outcome: stalefs.Zombie, Errno: syscall.EIO}, syscall.EIO, false, true},
		} {
			t.Run(string(ch.kind)+" "+f.fault.Outcome.String()+" "+f.fault.Errno.Error(), func(t *testing.T) {
				c := newCluster(t, 1, patient)
				ch.prepare(t, c)
				dir := c.hosts[0].dir(t)
				c.hosts[0].Inject(stalefs.At(0, f.fault))
				require.ErrorIs(t, ch.call(dir), f.answer)
				require.Equal(t, f.atOnce, ch.done(c))
				c.server.Land()
				require.Equal(t, f.ever, ch.done(c))
				require.Equal(t, 1, c.hosts[0].Calls())
			})
		}
	}
}

// A zombie is executed by itself, and its handles stay valid until then.
// Rule: none (simulated client)
func TestZombieRisesByItself(t *testing.T) {
	c := newCluster(t, 2, patient)
	dir := c.hosts[0].dir(t)
	c.hosts[0].Inject(stalefs.At(0, stalefs.Fault{Outcome: stalefs.Zombie, Errno: syscall.EIO, Later: time.Millisecond}))
	require.ErrorIs(t, dir.Mkdir("new", 0o777), syscall.EIO)
	require.Eventually(t, func() bool { return len(c.names(t)) == 1 }, watchdog, time.Millisecond)
}

// On a hard mount a call waits for the server, and is then executed.
// Rule: none (simulated client)
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

// On a soft mount a call fails after a while, and cached names remain valid.
// Rule: none (simulated client)
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

// A host that is cut off does not keep other hosts from working.
// Rule: none (simulated client)
func TestPartition(t *testing.T) {
	c := newCluster(t, 2, stalefs.Options{Soft: time.Millisecond})
	a, b := c.hosts[0].dir(t), c.hosts[1].dir(t)
	c.hosts[0].Cut()
	require.ErrorIs(t, a.Mkdir("new", 0o777), syscall.ETIMEDOUT)
	require.NoError(t, b.Mkdir("new", 0o777))
	c.hosts[0].Heal()
	require.ErrorIs(t, a.Mkdir("new", 0o777), syscall.EEXIST)
}
