package mongo_test

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

const (
	// long is a TTL that does not pass during a test.
	long = time.Hour
	// eyeblink is how often a condition is looked at.
	eyeblink = 2 * time.Millisecond
)

func scenes() []scene {
	return []scene{
		{"acquire", playAcquire},
		{"acquire a lock that was held before", playAcquireAgain},
		{"acquire a held lock", playRefusal},
		{"renew", playRenew},
		{"release", playRelease},
		{"break", playBreak},
		{"force", playForce},
		{"commit", playCommit},
		{"forget", playForget},
		{"mark the job", playMark},
		{"fence", playFence},
		{"outcome", playOutcome},
		{"publish", playPublish},
		{"record", playRecord},
		{"read", playReads},
		{"swap", playSwap},
	}
}

func playAcquire(s *stage) {
	s.arm()
	lock, err := multilock.TryAcquire(s.ctx, s.src, "nightly", multilock.Options{TTL: long, Detached: true})
	s.disarm()
	s.requireAttempt(lock, err)
}

func playAcquireAgain(s *stage) {
	require.NoError(s, s.take().Release(s.ctx))
	playAcquire(s)
}

// requireAttempt: who says to have the lock has it, and who does not has left
// nothing. A command that is carried out long after its attempt locks for a TTL at
// most; it takes nothing from anybody, and gives the lock to nobody.
func (s *stage) requireAttempt(lock *multilock.Lock, err error) {
	s.requireDone(err)
	if err != nil {
		require.NotErrorIs(s, err, multilock.ErrHeld)
		s.requireNobody()
		s.awake()
		return
	}
	s.requireHeldBy(lock.Record().Token)
	s.awake()
	s.requireHeldBy(lock.Record().Token)
	require.NoError(s, lock.Verify(s.ctx))
	require.NoError(s, lock.Release(s.ctx))
	s.requireNobody()
}

func playRefusal(s *stage) {
	lock := s.take()
	rival := s.rival()
	s.arm()
	_, err := multilock.TryAcquire(s.ctx, rival, "nightly", multilock.Options{TTL: long})
	s.disarm()
	require.Error(s, err)
	s.requireHeldBy(lock.Record().Token)
	s.awake()
	s.requireHeldBy(lock.Record().Token)
	require.NoError(s, lock.Release(s.ctx))
}

func playRenew(s *stage) {
	lease := leased(s, s.src, "nightly", claim(long))
	s.arm()
	err := lease.Renew(s.ctx)
	s.disarm()
	s.requireDone(err)
	require.NotErrorIs(s, err, multilock.ErrLost)
	require.NoError(s, lease.Renew(s.ctx))
	s.requireHeldBy(lease.Record().Token)
	require.NoError(s, lease.Release(s.ctx))
	s.awake()
	s.requireNobody()
}

func playRelease(s *stage) {
	lock := s.take()
	s.arm()
	err := lock.Release(s.ctx)
	s.disarm()
	s.requireDone(err)
	require.NotErrorIs(s, err, multilock.ErrLost)
	if err != nil {
		require.ErrorIs(s, err, multilock.ErrUnsure)
		require.NoError(s, lock.Release(s.ctx))
	}
	s.requireNobody()
	next := try(s, s.rival(), "nightly", multilock.Options{TTL: long})
	s.awake()
	require.NoError(s, next.Verify(s.ctx))
	require.NoError(s, next.Release(s.ctx))
}

func leaseOfTheDead(s *stage) source.Lease {
	c := claim(long)
	c.Holder.Identity = deadIdentity(s)
	return leased(s, s.src, "nightly", c)
}

func playBreak(s *stage) {
	dead := leaseOfTheDead(s)
	rival := s.rival()
	s.arm()
	_, err := multilock.Break(s.ctx, rival, "nightly", multilock.Want{Token: dead.Record().Token})
	s.disarm()
	s.requireBroken(err, dead)
}

// requireBroken: a break that says so has broken the lock, and can be made once more
// if it does not. Its delayed command does not reach a successor.
func (s *stage) requireBroken(err error, dead source.Lease) {
	s.requireDone(err)
	if err != nil {
		require.NotErrorIs(s, err, multilock.ErrHeld)
		require.NotErrorIs(s, err, multilock.ErrFree)
		_, err = multilock.Break(s.ctx, s.rival(), "nightly", multilock.Want{Token: dead.Record().Token, Alive: true})
		require.True(s, err == nil || errors.Is(err, multilock.ErrFree), "%v", err)
	}
	s.requireNobody()
	require.ErrorIs(s, dead.Renew(s.ctx), multilock.ErrLost)
	successor := try(s, s.src, "nightly", multilock.Options{TTL: long})
	s.awake()
	require.NoError(s, successor.Verify(s.ctx))
	require.ErrorIs(s, dead.Release(s.ctx), multilock.ErrLost)
	require.NoError(s, successor.Release(s.ctx))
}

func playForce(s *stage) {
	lease := leased(s, s.src, "nightly", claim(long))
	rival := s.rival()
	s.arm()
	_, err := multilock.Break(s.ctx, rival, "nightly", multilock.Want{Alive: true})
	s.disarm()
	s.requireBroken(err, lease)
}

func playCommit(s *stage) {
	lock := s.take()
	s.arm()
	err := lock.Commit(s.ctx, result(lock, 3))
	s.disarm()
	s.requireChanged(err, func() error { return lock.Commit(s.ctx, result(lock, 3)) })
	found, err := lock.Outcome(s.ctx)
	require.NoError(s, err)
	require.Equal(s, 3, found.Exit)

	require.NoError(s, lock.Commit(s.ctx, result(lock, 0)))
	s.awake() // and does not bring the earlier attempt back
	found, err = lock.Outcome(s.ctx)
	require.NoError(s, err)
	require.Equal(s, 0, found.Exit)
	require.NoError(s, lock.Release(s.ctx))
}

// requireChanged: a change was made, or can be made once more. Nobody was told that
// the lock is lost.
func (s *stage) requireChanged(err error, again func() error) {
	s.requireDone(err)
	if err != nil {
		require.NotErrorIs(s, err, multilock.ErrLost)
		require.NoError(s, again())
	}
}

func playForget(s *stage) {
	lock := s.take()
	require.NoError(s, lock.Commit(s.ctx, result(lock, 3)))
	s.arm()
	err := lock.Forget(s.ctx)
	s.disarm()
	s.requireChanged(err, func() error { return lock.Forget(s.ctx) })
	_, err = lock.Outcome(s.ctx)
	require.ErrorIs(s, err, multilock.ErrNoResult)
	require.NoError(s, lock.Commit(s.ctx, result(lock, 0)))
	s.awake() // and does not remove what was committed since
	_, err = lock.Outcome(s.ctx)
	require.NoError(s, err)
	require.NoError(s, lock.Release(s.ctx))
}

func playMark(s *stage) {
	lease := leased(s, s.src, "nightly", claim(long))
	s.arm()
	err := lease.MarkJob(s.ctx, process.Group{PGID: 4711})
	s.disarm()
	s.requireChanged(err, func() error { return lease.MarkJob(s.ctx, process.Group{PGID: 4711}) })
	require.NoError(s, lease.MarkJob(s.ctx, process.Group{PGID: 4712}))
	s.awake() // and does not name the earlier job again
	require.Equal(s, 4712, requireState(s, s.src, "nightly", multilock.StateHeld).Record.Groups[0].PGID)
	require.NoError(s, lease.Release(s.ctx))
}

func playFence(s *stage) {
	lock := s.take()
	before, err := lock.Fence(s.ctx)
	require.NoError(s, err)
	s.arm()
	number, err := lock.Fence(s.ctx)
	s.disarm()
	s.requireDone(err)
	require.NotErrorIs(s, err, multilock.ErrLost)
	if err == nil {
		require.Greater(s, number, before)
		before = number
	}
	s.awake()
	after, err := lock.Fence(s.ctx)
	require.NoError(s, err)
	require.Greater(s, after, before)
	require.NoError(s, lock.Release(s.ctx))
}

func playOutcome(s *stage) {
	lock := s.take()
	require.NoError(s, lock.Commit(s.ctx, result(lock, 3)))
	s.arm()
	found, err := lock.Outcome(s.ctx)
	s.disarm()
	s.requireDone(err)
	require.NotErrorIs(s, err, multilock.ErrLost)
	require.NotErrorIs(s, err, multilock.ErrNoResult)
	if err == nil {
		require.Equal(s, 3, found.Exit)
	}
	s.awake()
	require.NoError(s, lock.Release(s.ctx))
}

func playPublish(s *stage) {
	s.arm()
	got, err := s.src.Publish(s.ctx, []byte("ours"))
	s.disarm()
	s.requireDone(err)
	if err == nil {
		require.Equal(s, "ours", string(got))
	}
	s.awake()
	got, err = s.rival().Publish(s.ctx, []byte("ours"))
	require.NoError(s, err)
	require.Equal(s, "ours", string(got))
	got, err = s.rival().Publish(s.ctx, []byte("theirs"))
	require.NoError(s, err)
	require.Equal(s, "ours", string(got))
}

func playRecord(s *stage) {
	event := source.Event{Time: time.Now(), What: source.EventAcquired, Name: "nightly"}
	s.arm()
	recorded := s.src.Record(s.ctx, []source.Event{event})
	s.disarm()
	s.requireDone(recorded)
	found, err := source.Collect(s.rival().History(s.ctx, time.Time{}))
	require.NoError(s, err)
	if recorded == nil {
		require.NotEmpty(s, found)
	}
	s.awake()
	require.NoError(s, s.rival().Record(s.ctx, []source.Event{event}))
}

// playReads asks everything that there is to ask. Wrong answers are worse than none.
func playReads(s *stage) {
	lock := s.take()
	require.NoError(s, lock.Commit(s.ctx, result(lock, 3)))
	reader := s.rival()
	revision, err := reader.Revision(s.ctx)
	require.NoError(s, err)
	s.arm()
	names, err := reader.Names(s.ctx)
	require.True(s, err != nil || len(names) == 1, names)
	names, err = reader.Results(s.ctx)
	require.True(s, err != nil || len(names) == 1, names)
	vacant, err := reader.Vacant(s.ctx)
	require.True(s, err != nil || !vacant)
	again, err := reader.Revision(s.ctx)
	require.True(s, err != nil || revision == again, again)
	found, err := reader.Result(s.ctx, "nightly")
	require.True(s, err != nil && !errors.Is(err, multilock.ErrNoResult) || found.Exit == 3, "%v", err)
	seen, err := multilock.Inspect(s.ctx, reader, "nightly", multilock.Patience{})
	require.True(s, err != nil || seen.State == multilock.StateHeld, seen)
	s.disarm()
	s.awake()
	require.NoError(s, lock.Release(s.ctx))
}

// playSwap: an answer is true, and one who says to be unsure, is.
func playSwap(s *stage) {
	register := s.register(s.place(s.c), "cell")
	_, first, err := register.Swap(s.ctx, []byte("one"))
	require.NoError(s, err)
	s.arm()
	old, n, err := register.Swap(s.ctx, []byte("two"))
	s.disarm()
	now, count, peeked := register.Peek(s.ctx)
	require.NoError(s, peeked)
	switch {
	case err == nil:
		require.Equal(s, "one", string(old))
		require.Equal(s, first+1, n)
		require.Equal(s, "two", string(now))
	case !errors.Is(err, multilock.ErrUnsure):
		require.Equal(s, "one", string(now))
		require.Equal(s, first, count)
	}
	s.awake()
}
