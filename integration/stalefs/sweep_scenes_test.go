//go:build linux

package stalefs_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// scene is a part of the protocol whose calls lose their replies in turn.
type scene struct {
	name    string
	prepare func(*step)
	play    func(*step) error
	check   func(*step, error)
}

func scenes() []scene {
	return append([]scene{
		{"first acquire", func(*step) {}, (*step).compete, (*step).checkAcquired},
		{"acquire", (*step).warmUp, (*step).compete, (*step).checkAcquired},
		{"renew", (*step).hold, (*step).renew, (*step).checkHeld},
		{"fence", (*step).hold, (*step).fence, (*step).checkFenced},
		{"release", (*step).hold, (*step).release, (*step).checkReleased},
	}, breaks()...)
}

func breaks() []scene {
	return []scene{
		{"break", (*step).leaveSilent, (*step).breakDead, (*step).checkBroken},
		{"take over", (*step).leaveSilent, (*step).compete, (*step).checkAcquired},
	}
}

func claim() source.Claim { return source.Claim{TTL: sweptTTL, Heartbeat: sweptBeat} }

// warmUp makes the first use of the place, on the host that will be struck, and
// then changes it from another one: what the first remembers is stale.
func (s *step) warmUp() {
	s.hold()
	require.NoError(s, s.release())
	other := s.cluster.open(s, s.cluster.hosts[1], s.place, vfs.OS{})
	defer other.Close()
	lease := plant(s, other)
	require.NoError(s, lease.Release(s.Context()))
	s.lease = nil
}

// plant takes the free lock and leaves it to the test to renew it or not.
func plant(t testing.TB, src *fslock.Source) source.Lease {
	t.Helper()
	contender, err := src.Contend(t.Context(), sweptName, claim(), multilock.Patience{})
	require.NoError(t, err)
	lease, err := contender.Try(t.Context())
	require.NoError(t, err)
	require.NoError(t, contender.Close())
	return lease
}

func (s *step) hold() { s.lease = plant(s, s.src) }

// leaveSilent leaves the lock of another host that gives no sign of life.
func (s *step) leaveSilent() {
	s.warmUp()
	other := s.cluster.open(s, s.cluster.hosts[1], s.place, vfs.OS{})
	defer other.Close()
	require.NoError(s, plant(s, other).Close())
}

// compete is what the core does to get a lock that nobody living holds.
func (s *step) compete() error {
	c, err := s.src.Contend(s.Context(), sweptName, claim(), multilock.Patience{})
	if err != nil {
		return err
	}
	for s.lease == nil && err == nil {
		if s.lease, err = c.Try(s.Context()); errors.Is(err, multilock.ErrHeld) {
			err = passBy(s.Context(), c)
		}
	}
	return errors.Join(err, c.Close())
}

// passBy watches who is in the way, and breaks the dead.
func passBy(ctx context.Context, c source.Contender) error {
	seen, err := c.Look(ctx)
	if err != nil || seen.State == multilock.StateFree {
		return err
	}
	if seen.State != multilock.StateDead {
		time.Sleep(min(seen.Next, sweptBeat/4))
		return nil
	}
	if err = c.Break(ctx); errors.Is(err, multilock.ErrHeld) {
		return nil
	}
	return err
}

func (s *step) renew() error { return s.lease.Renew(s.Context()) }

func (s *step) release() error { return s.lease.Release(s.Context()) }

func (s *step) fence() error {
	number, err := s.lease.Fence(s.Context())
	if err == nil {
		s.number = number
	}
	return err
}

func (s *step) breakDead() (err error) {
	if s.observer == nil {
		if s.observer, err = s.src.Observe(s.Context(), sweptName, multilock.Patience{}); err != nil {
			return err
		}
	}
	for {
		s.seen, err = s.observer.Look(s.Context())
		switch {
		case err != nil:
			return err
		case s.seen.State == multilock.StateFree:
			return nil
		case s.seen.State == multilock.StateDead:
			// What an earlier call sent may be carried out just now, and looks like a sign of life.
			if err := s.observer.Break(s.Context()); !errors.Is(err, multilock.ErrHeld) {
				return err
			}
		}
		time.Sleep(min(s.seen.Next, sweptBeat/4))
	}
}

// lockDir is the lock's directory on the server's disk.
func (s *step) lockDir() string {
	return s.cluster.there(s.place, fslock.DefaultGroup, sweptName)
}

// record is the lock on the server's disk; without a token if there is none.
func (s *step) record() source.Record {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.lockDir(), sweptName+".locked"))
	if errors.Is(err, fs.ErrNotExist) {
		return source.Record{}
	}
	require.NoError(s, err)
	return fslock.ParseRecord(sweptName, content)
}

func (s *step) token() string { return s.record().Token }

// left is what is in the lock's directory, if there is one.
func (s *step) left() []os.DirEntry {
	entries, err := os.ReadDir(s.lockDir())
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(s, err)
	}
	return entries
}

// ageLimbo spares the test the ten seconds for which a directory without a lock
// file has to be left alone.
func (s *step) ageLimbo() {
	if len(s.left()) > 0 && s.token() == "" {
		old := time.Now().Add(-time.Minute)
		require.NoError(s, os.Chtimes(s.lockDir(), old, old))
	}
}

// checkAcquired: acquired means ours, an error means not ours, unless it says that
// it cannot tell. That stays so when all has been carried out that will ever be.
func (s *step) checkAcquired(err error) {
	s.Helper()
	if s.lease != nil {
		require.NoError(s, err)
		s.checkHeld(nil)
		s.cluster.server.Land()
		require.Empty(s, s.token())
		return
	}
	require.Error(s, err)
	if errors.Is(err, multilock.ErrUnsure) {
		return
	}
	require.NotEqual(s, s.struck.name, s.record().Holder.Host, "an attempt that failed left a lock: %v", err)
	s.cluster.server.Land()
	require.NotEqual(s, s.struck.name, s.record().Holder.Host, "an attempt that failed takes the lock later: %v", err)
}

// checkHeld: the lock is still held, so nobody may have said that it is lost.
func (s *step) checkHeld(err error) {
	s.Helper()
	require.NotErrorIs(s, err, multilock.ErrLost)
	require.Equal(s, s.lease.Record().Token, s.token())
	require.NoError(s, s.renew())
	require.NoError(s, s.release())
	require.Empty(s, s.token())
}

func (s *step) checkFenced(err error) {
	s.Helper()
	require.NotErrorIs(s, err, multilock.ErrLost)
	first := s.number
	require.NoError(s, s.fence())
	require.Greater(s, s.number, first)
	s.checkHeld(nil)
}

// checkReleased: released means that it is gone, and so does lost; after any other
// error it can be tried again.
func (s *step) checkReleased(err error) {
	s.Helper()
	if err != nil && !errors.Is(err, multilock.ErrLost) {
		require.NoError(s, s.release())
	}
	require.Empty(s, s.token())
}

// checkBroken: nothing but an error leaves the lock, and then it can be broken still.
func (s *step) checkBroken(err error) {
	s.Helper()
	if err != nil {
		require.NoError(s, s.breakDead())
	}
	require.Empty(s, s.token())
}
