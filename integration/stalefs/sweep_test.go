//go:build linux

package stalefs_test

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/stalefs"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

const (
	sweptName = "lock"
	// sweptTTL is short, so that the silence of who gave up soon tells.
	sweptTTL  = 300 * time.Millisecond
	sweptBeat = 60 * time.Millisecond
	// long is a time to live that does not end during a test.
	long = time.Hour
)

// faults are what can become of a call. A zombie without a time rises when the
// next holder has the lock.
func faults() []stalefs.Fault {
	return []stalefs.Fault{
		{Outcome: stalefs.Retransmitted},
		{Outcome: stalefs.Lost, Errno: syscall.EIO},
		{Outcome: stalefs.Lost, Errno: syscall.ETIMEDOUT},
		{Outcome: stalefs.Dropped, Errno: syscall.EIO},
		{Outcome: stalefs.Dropped, Errno: syscall.ETIMEDOUT},
		{Outcome: stalefs.Zombie, Errno: syscall.ETIMEDOUT},
		{Outcome: stalefs.Zombie, Errno: syscall.EIO, Later: 3 * time.Millisecond},
	}
}

func describe(f stalefs.Fault) string {
	if f.Errno == 0 {
		return f.Outcome.String()
	}
	return fmt.Sprintf("%s %s after %s", f.Outcome, f.Errno, f.Later)
}

// Whichever call loses its reply, and however: what the lock says is true, and the
// next contender, on another host, gets the lock and keeps it.
func TestLostReplyAtEveryCall(t *testing.T) {
	t.Parallel()
	sweepAll(t, scenes(), vfs.OS{})
}

// The same for a breaker who is told that this is NFS.
func TestLostReplyAtEveryCallOfABreakOnNFS(t *testing.T) {
	t.Parallel()
	sweepAll(t, breaks(), asNFS(vfs.OS{}))
}

func sweepAll(t *testing.T, scenes []scene, through vfs.FS) {
	t.Helper()
	slots := make(chan struct{}, 10) // who gets no processor for long cannot tell others' silence from its own
	var group sync.WaitGroup
	defer group.Wait()
	for _, s := range scenes {
		for _, f := range faults() {
			group.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				t.Run(s.name+", "+describe(f), func(t *testing.T) { sweep(t, s, f, through) })
			})
		}
	}
}

// sweep lets a fault strike at each call of a scene in turn, until none is left.
func sweep(t *testing.T, s scene, f stalefs.Fault, through vfs.FS) {
	t.Helper()
	c := newCluster(t, 3, stalefs.Options{})
	calls := sweepCalls(t, c, through, s, f)
	require.Positive(t, calls, "the scene changes nothing")
	t.Logf("%d calls", calls)
}

// sweepCalls says how many calls were struck.
func sweepCalls(t testing.TB, c *cluster, through vfs.FS, s scene, f stalefs.Fault) int {
	for n := 0; ; n++ {
		if !newStep(t, c, through).run(s, stalefs.At(n, f), n) {
			return n
		}
	}
}

// step is one run of a scene, in a place of its own.
type step struct {
	testing.TB
	cluster *cluster
	place   string
	struck  *host // whose call meets the fault

	src      *fslock.Source
	lease    source.Lease
	observer source.Observer
	seen     multilock.Sighting
	number   uint64
}

func newStep(t testing.TB, c *cluster, through vfs.FS) *step {
	s := &step{TB: t, cluster: c, place: c.newPlace(t), struck: c.hosts[0]}
	s.src = c.open(s, s.struck, s.place, through)
	return s
}

// run plays a scene and checks the outcome. It reports whether the fault struck.
func (s *step) run(scene scene, inject stalefs.Injector, n int) bool {
	defer s.end()
	scene.prepare(s)
	s.struck.Inject(inject)
	err := scene.play(s)
	calls := s.struck.Calls()
	s.struck.Inject(nil)
	s.Logf("call %d of %d: %v", n+1, calls, err)
	scene.check(s, err)
	s.requireNext()
	return calls > n
}

// requireNext demands that another host gets the lock, and keeps it whatever is
// still carried out of what the first one sent.
func (s *step) requireNext() {
	s.Helper()
	s.ageLimbo()
	next := s.cluster.open(s, s.cluster.hosts[2], s.place, vfs.OS{})
	defer next.Close()
	lock, err := multilock.Acquire(within(s), next, sweptName, multilock.Options{TTL: long, Poll: 10 * time.Millisecond})
	require.NoError(s, err, "whatever happened before, the lock is to be had")
	s.cluster.server.Land()
	require.Equal(s, lock.Record().Token, s.token())
	require.NoError(s, lock.Verify(s.Context()))
	require.NoError(s, lock.Release(s.Context()))
	require.Empty(s, s.left(), "somebody's files are in the way")
}

// end closes whatever is open, also after a failure.
func (s *step) end() {
	s.struck.Inject(nil)
	var err error
	if s.lease != nil {
		err = s.lease.Close()
	}
	if s.observer != nil {
		err = errors.Join(err, s.observer.Close())
	}
	require.NoError(s, errors.Join(err, s.src.Close()))
}
