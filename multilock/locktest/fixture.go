package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Fixture opens a lock source, and declares its capabilities.
type Fixture struct {
	// Place makes a new, empty place for locks, which is removed after the test. Every call of the returned
	// function opens that place once more, as another process would: all sources of one place see the same
	// locks.
	Place func(t testing.TB) (open func() source.Source)
	// TTL is the time to live in tests that wait until it is over, DefaultTTL if 0. A tenth of it must be
	// measurable for the source.
	TTL time.Duration
	// Distant means that a request takes long, up to a twentieth of TTL. Rivals then contend for fewer
	// rounds, and only some odd names are tried.
	Distant bool
	// Fences means that locks have fencing tokens.
	Fences bool
	// Marks means that the process group of a job can be recorded with the lock.
	Marks bool
	// Deaths means that the end of a holder's process on this host is noticed before its TTL has passed.
	Deaths bool
	// Timed, if not nil, replaces Place for a source whose locks are released by time alone (source.Timed),
	// after that period. A release must not free such a lock, and it must not be possible to break it.
	Timed func(t testing.TB, period time.Duration) (open func() source.Source)
	// Odd are names that this source must keep apart, Refused names that it must reject, in addition to
	// those of every source.
	Odd, Refused []string
	// Impossible are odd names that cannot exist where the source is.
	Impossible []string
	// Step is longer than a step of the clock with which the source dates its results; DefaultStep if 0.
	Step time.Duration
}

// DefaultTTL is the time to live in tests that wait until it is over: short enough for a test, and long
// enough for a loaded machine to send heartbeats in between.
const DefaultTTL = time.Second

// DefaultStep is longer than a step of most clocks.
const DefaultStep = 20 * time.Millisecond

// Run tests a source. The tests are independent of each other and run in parallel; none of them depends on
// speed.
func Run(t *testing.T, f Fixture) {
	if f.Timed != nil {
		runTimed(t, f)
		return
	}
	tests := []struct {
		name string
		run  func(*place)
	}{
		{"AcquireReleaseAcquire", testAcquireReleaseAcquire},
		{"HeldNamesTheHolder", testHeldNamesTheHolder},
		{"OneOfManyWins", testOneOfManyWins},
		{"WaiterGetsTheLock", testWaiterGetsTheLock},
		{"CancelledWaiterLeavesNothing", testCancelledWaiterLeavesNothing},
		{"ContenderLeavesNothing", testContenderLeavesNothing},
		{"LocksAreIndependent", testLocksAreIndependent},
		{"MutualExclusion", testMutualExclusion},
		{"MutualExclusionAfterASilentHolder", testMutualExclusionAfterASilentHolder},
		{"ReleaseTwice", testReleaseTwice},
		{"LeaseAfterABreak", testLeaseAfterABreak},
		{"CloseKeepsTheLock", testCloseKeepsTheLock},
		{"BreakSparesTheLiving", testBreakSparesTheLiving},
		{"BreakNeedsTheToken", testBreakNeedsTheToken},
		{"ForceReachesOneWhoRenews", testForceReachesOneWhoRenews},
		{"BreakReachesNoSuccessor", testBreakReachesNoSuccessor},
		{"FreeLockCannotBeBroken", testFreeLockCannotBeBroken},
		{"DeadProcess", testDeadProcess},
		{"Owner", testOwner},
		{"JobKeepsTheLock", testJobKeepsTheLock},
		{"JobMark", testJobMark},
		{"Fences", testFences},
		{"Detached", testDetached},
		{"SilenceWithinMaxAge", testSilenceWithinMaxAge},
		{"RenewedLockIsNeverDead", testRenewedLockIsNeverDead},
		{"KeptLockOutlastsItsTTL", testKeptLockOutlastsItsTTL},
		{"OddNames", testOddNames},
		{"RefusedNames", testRefusedNames},
		{"Names", testNames},
		{"Commit", testCommit},
		{"CommitOfAChunk", testCommitOfAChunk},
		{"Forget", testForget},
		{"CommitAfterABreak", testCommitAfterABreak},
		{"CommitAfterTheRelease", testCommitAfterTheRelease},
		{"ResultsOfOddNames", testResultsOfOddNames},
		{"OneOfManyRuns", testOneOfManyRuns},
		{"Revision", testRevision},
		{"Timekeeper", testTimekeeper},
		{"Guarantees", testGuarantees},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(newPlace(t, f))
		})
	}
}

func (f Fixture) ttl() time.Duration {
	if f.TTL == 0 {
		return DefaultTTL
	}
	return f.TTL
}

// rounds is how often each rival acquires the lock in the tests of mutual exclusion.
func (f Fixture) rounds() int {
	if f.Distant {
		return 1
	}
	return 12
}

// watchdog ends a test that would otherwise hang. No test depends on it.
const watchdog = 5 * time.Minute

// place has the locks of one test.
type place struct {
	*testing.T
	fixture Fixture
	ttl     time.Duration
	ctx     context.Context //nolint:containedctx // the test's own
	open    func() source.Source
}

func newPlace(t *testing.T, f Fixture) *place {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	p := &place{T: t, fixture: f, ttl: f.ttl(), ctx: ctx, open: f.Place(t)}
	t.Cleanup(cancel) // runs before the place's own cleanup
	return p
}

// try acquires a lock that must be free.
func (p *place) try(src source.Source, name string, opt multilock.Terms) *multilock.Lock {
	p.Helper()
	lock, err := multilock.TryAcquire(p.ctx, src, name, opt)
	require.NoError(p, err)
	p.releaseInTheEnd(lock)
	return lock
}

// wait acquires a lock that must become free.
func (p *place) wait(src source.Source, name string, opt multilock.Terms) *multilock.Lock {
	p.Helper()
	lock, err := multilock.Acquire(p.ctx, src, name, opt)
	require.NoError(p, err)
	p.releaseInTheEnd(lock)
	return lock
}

func (p *place) releaseInTheEnd(lock *multilock.Lock) {
	p.Cleanup(func() { _ = lock.Release(context.Background()) })
}

// release releases a lock that must still be held.
func (p *place) release(lock *multilock.Lock) {
	p.Helper()
	require.NoError(p, lock.Release(p.ctx))
}

// lease acquires a free lock that is not renewed: its holder sends no heartbeats.
func (p *place) lease(src source.Source, name string, claim source.Claim) source.Lease {
	p.Helper()
	contender, err := src.Contend(p.ctx, name, claim, source.StalePolicy{})
	require.NoError(p, err)
	lease, err := contender.Try(p.ctx)
	require.NoError(p, err)
	require.NoError(p, contender.Close())
	p.Cleanup(func() { _ = lease.Release(context.Background()) })
	return lease
}

// claim is what a holder with a short TTL writes.
func (p *place) claim() source.Claim {
	return source.Claim{TTL: p.ttl, Heartbeat: p.ttl / 10}
}

// requireHeld checks that a lock is held by the acquisition with this token.
func (p *place) requireHeld(src source.Source, name, token string) {
	p.Helper()
	_, err := multilock.TryAcquire(p.ctx, src, name, multilock.Options{})
	var held *multilock.HeldError
	require.ErrorAs(p, err, &held)
	require.ErrorIs(p, err, source.ErrHeld)
	require.Equal(p, name, held.Name)
	require.Equal(p, token, held.Observation.Record.Token)
}

func (p *place) requireFree(src source.Source, name string) {
	p.Helper()
	seen, err := multilock.Inspect(p.ctx, src, name, source.StalePolicy{})
	require.NoError(p, err)
	require.Equal(p, source.StateFree, seen.State)
}

func (p *place) requireNames(src source.Source, want ...string) {
	p.Helper()
	names, err := src.Names(p.ctx)
	require.NoError(p, err)
	require.Equal(p, want, append([]string(nil), names...))
}
