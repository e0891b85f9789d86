package locktest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// claimOf is what another process of this host writes; its TTL does not expire during a test.
func claimOf(id process.Identity) source.Claim {
	return source.Claim{Holder: source.Holder{Identity: id}, TTL: time.Hour, Heartbeat: time.Minute}
}

func testDeadProcess(p *place) {
	if !p.fixture.Deaths {
		p.Skip("this source judges by silence alone")
	}
	holder := startChild(p)
	lease := p.lease(p.open(), "nightly", claimOf(holder.identity))
	rival := p.open()
	p.requireHeld(rival, "nightly", lease.Record().Token)

	holder.end(p)
	seen, err := multilock.Inspect(p.ctx, rival, "nightly", source.StalePolicy{MaxAge: time.Hour})
	require.NoError(p, err)
	require.Equal(p, source.StateDead, seen.State)
	successor := p.try(rival, "nightly", multilock.Options{})
	require.ErrorIs(p, lease.Renew(p.ctx), source.ErrLost)
	p.release(successor)
}

// testOwner acquires a lock for another process, and ends that process.
func testOwner(p *place) {
	owner, rival := startChild(p), p.open()
	lock := p.try(p.open(), "nightly", multilock.OnBehalf{Owner: owner.identity})
	requireHolder(p, owner.identity, lock.Record())
	seen, err := multilock.Inspect(p.ctx, rival, "nightly", source.StalePolicy{})
	require.NoError(p, err)
	requireHolder(p, owner.identity, seen.Record)
	require.NoError(p, lock.Verify(p.ctx))
	owner.end(p)
	if p.fixture.Deaths {
		p.release(p.try(rival, "nightly", multilock.Options{}))
		require.ErrorIs(p, lock.Verify(p.ctx), source.ErrLost)
	}
}

// requireHolder checks the holder of a lock, in all fields that its source stores.
func requireHolder(p *place, want process.Identity, record source.Record) {
	p.Helper()
	if record.Holder.Machine == "" {
		want.Machine = ""
	}
	require.Equal(p, want, record.Holder.Identity)
}

// testJobKeepsTheLock ends a holder whose job is still alive, and then the job, which its mark identifies.
// If a source cannot see that, the missing heartbeat decides.
func testJobKeepsTheLock(p *place) {
	if !p.fixture.Deaths {
		p.Skip("this source judges by silence alone")
	}
	holder := startChild(p)
	claim := claimOf(holder.identity)
	key := process.NewJobKey()
	claim.Job, claim.KeyDigest = true, key.Digest()
	lease := p.lease(p.open(), "nightly", claim)
	job := startChild(p, process.TokenEntry(lease.Record().Token), key.Entry()) // a source may have no room for the digest
	holder.end(p)
	rival := p.open()
	p.requireHeld(rival, "nightly", lease.Record().Token)
	_, err := multilock.Break(p.ctx, rival, "nightly", multilock.BreakOptions{})
	require.ErrorIs(p, err, source.ErrHeld)
	require.NoError(p, lease.Renew(p.ctx))

	job.end(p)
	self, err := SelfOn("")
	require.NoError(p, err)
	if holder.identity.JudgeJob(lease.Record().JobMark(), self).Life == process.Unknown {
		p.Skip("this user cannot see on this host whether a job lives")
	}
	p.release(p.wait(rival, "nightly", multilock.Options{}))
	require.ErrorIs(p, lease.Renew(p.ctx), source.ErrLost)
}

// testJobMark records the groups of jobs that nothing else identifies. One live group is enough.
func testJobMark(p *place) {
	if !p.fixture.Marks {
		lock := p.try(p.open(), "nightly", multilock.Options{})
		require.ErrorIs(p, lock.MarkJob(p.ctx, process.Group{PGID: 4711}), source.ErrUnsupported)
		require.NoError(p, lock.Verify(p.ctx))
		return
	}
	holder, over, job := startChild(p), startChild(p), startChild(p)
	claim := claimOf(holder.identity)
	claim.Job = true
	lease := p.lease(p.open(), "nightly", claim)
	require.NoError(p, lease.MarkJob(p.ctx, over.group))
	job.group.Work = process.Work{Job: 12, Attempt: 2, Slot: 3, After: 1.5}
	require.NoError(p, lease.MarkJob(p.ctx, over.group, job.group))
	over.end(p)
	holder.end(p)
	rival := p.open()
	p.requireHeld(rival, "nightly", lease.Record().Token)
	seen, err := multilock.Inspect(p.ctx, rival, "nightly", source.StalePolicy{})
	require.NoError(p, err)
	require.Equal(p, []process.Group{over.group, job.group}, seen.Record.Groups)
	if observer, ok := rival.(source.JobObserver); ok {
		groups, err := observer.JobGroups(p.ctx, "nightly")
		require.NoError(p, err)
		require.Equal(p, seen.Record.Groups, groups)
		groups, err = observer.JobGroups(p.ctx, "free")
		require.NoError(p, err)
		require.Empty(p, groups)
	}
	require.Contains(p, seen.Why, "its job lives")
	require.NoError(p, lease.Renew(p.ctx))
}

func testFences(p *place) {
	a, b := p.open(), p.open()
	if !p.fixture.Fences {
		lock := p.try(a, "nightly", multilock.Options{})
		_, err := lock.Fence(p.ctx)
		require.ErrorIs(p, err, source.ErrUnsupported)
		require.NoError(p, lock.Verify(p.ctx))
		return
	}
	highest := uint64(0)
	for _, src := range []source.Source{a, b, p.open(), a} {
		lock := p.try(src, "nightly", multilock.Options{})
		highest = p.growing(lock, highest)
		highest = p.growing(lock, highest)
		highest = p.distinct(lock, highest)
		p.forced(b, "nightly", lock.Record().Token)
		_, err := lock.Fence(p.ctx)
		require.ErrorIs(p, err, source.ErrLost)
	}
}

// growing draws one number, which must be larger than all before.
func (p *place) growing(lock *multilock.Lock, before uint64) uint64 {
	p.Helper()
	number, err := lock.Fence(p.ctx)
	require.NoError(p, err)
	require.Greater(p, number, before)
	return number
}

// distinct draws several numbers at once and returns the largest.
func (p *place) distinct(lock *multilock.Lock, before uint64) uint64 {
	p.Helper()
	const draws = 8
	type drawn struct {
		number uint64
		err    error
	}
	results := make(chan drawn, draws)
	for range draws {
		go func() {
			number, err := lock.Fence(p.ctx)
			results <- drawn{number, err}
		}()
	}
	seen, highest := map[uint64]bool{}, before
	for range draws {
		d := <-results
		require.NoError(p, d.err)
		require.Greater(p, d.number, before)
		require.False(p, seen[d.number], "the number %d was given out twice", d.number)
		seen[d.number], highest = true, max(highest, d.number)
	}
	return highest
}

// silences is for how many TTLs the tests watch a lock that must not count as dead.
const silences = 3

// testSilenceWithinMaxAge has two observers watch one holder without heartbeats, with a long and a short
// MaxAge.
func testSilenceWithinMaxAge(p *place) {
	p.lease(p.open(), "nightly", p.claim())
	patient := p.observe(p.open(), "nightly", source.StalePolicy{MaxAge: time.Hour})
	for start := boottime.Now(); start.Elapsed() < silences*p.ttl; p.pause(p.ttl / 10) {
		seen, err := patient.Look(p.ctx)
		require.NoError(p, err)
		require.Equal(p, source.StateHeld, seen.State)
	}
	p.watchUntilDead(p.observe(p.open(), "nightly", source.StalePolicy{MaxAge: p.ttl / 2}))
	require.ErrorIs(p, patient.Break(p.ctx), source.ErrHeld)
}

// testRenewedLockIsNeverDead renews before every look. However much time passes in between, there is always
// a new heartbeat to be seen.
func testRenewedLockIsNeverDead(p *place) {
	lease := p.lease(p.open(), "nightly", p.claim())
	rival, err := p.open().Contend(p.ctx, "nightly", p.claim(), source.StalePolicy{})
	require.NoError(p, err)
	for start := boottime.Now(); start.Elapsed() < silences*p.ttl; p.pause(p.ttl / 10) {
		require.NoError(p, lease.Renew(p.ctx))
		seen, err := rival.Look(p.ctx)
		require.NoError(p, err)
		require.Contains(p, []source.State{source.StateHeld, source.StateSuspect}, seen.State, seen.Why)
		require.ErrorIs(p, rival.Break(p.ctx), source.ErrHeld)
		_, err = rival.Try(p.ctx)
		require.ErrorIs(p, err, source.ErrHeld)
	}
	require.NoError(p, rival.Close())
	require.NoError(p, lease.Release(p.ctx))
}

// testKeptLockOutlastsItsTTL has a contender wait for a lock that is renewed. On a machine that stalls for
// a TTL the holder loses the lock, and must notice; then the test starts over.
func testKeptLockOutlastsItsTTL(p *place) {
	const attempts = 10
	for range attempts {
		lock := p.wait(p.open(), "nightly", multilock.Options{TTL: p.ttl})
		ctx, cancel := context.WithTimeout(p.ctx, silences*p.ttl)
		successor, err := multilock.Acquire(ctx, p.open(), "nightly", multilock.Options{})
		cancel()
		if err == nil {
			require.Zero(p, lock.Remaining(), "two believe in the lock")
			p.release(successor)
		}
		if lock.Release(p.ctx) == nil {
			require.ErrorIs(p, err, context.DeadlineExceeded)
			require.ErrorAs(p, err, new(*multilock.HeldError))
			return
		}
	}
	require.Fail(p, "the lock was lost every time")
}

func testDetached(p *place) {
	a, b := p.open(), p.open()
	long := p.try(a, "nightly", multilock.Detached{Options: multilock.Options{TTL: time.Hour}})
	require.Zero(p, long.Record().Heartbeat)
	p.requireHeld(b, "nightly", long.Record().Token)
	p.release(long)
	p.requireFree(b, "nightly")

	left := p.try(a, "nightly", multilock.Detached{Options: multilock.Options{TTL: time.Hour}})
	require.NoError(p, left.Detach())
	require.ErrorIs(p, left.Release(p.ctx), source.ErrReleased)
	p.requireHeld(b, "nightly", left.Record().Token)
	p.forced(b, "nightly", left.Record().Token)

	short := p.try(a, "nightly", multilock.Detached{Options: multilock.Options{TTL: p.ttl}})
	require.NoError(p, short.Detach())
	p.release(p.wait(b, "nightly", multilock.Options{}))
}
