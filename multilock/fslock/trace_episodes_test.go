package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// episodes are the steps of the protocol whose file operations are kept.
func episodes() map[string]func(*testing.T, *recorder) {
	return map[string]func(*testing.T, *recorder){
		"first-use":           recordFirstUse,
		"acquire":             recordAcquire,
		"acquire-legacy":      recordAcquireLegacy,
		"acquire-after-wait":  recordAcquireAfterWait,
		"acquire-empty":       recordAcquireEmpty,
		"refused":             recordRefused,
		"refused-again":       recordRefusedAgain,
		"give-up":             recordGiveUp,
		"heartbeat":           recordHeartbeat,
		"heartbeat-again":     recordHeartbeatAgain,
		"release":             recordRelease,
		"release-with-job":    recordReleaseWithJob,
		"mark-job":            recordMarkJob,
		"fence":               recordFence,
		"fence-again":         recordFenceAgain,
		"look-free":           recordLookFree,
		"look":                recordLook,
		"look-again":          recordLookAgain,
		"look-after-a-change": recordLookAfterAChange,
		"break":               recordBreak,
		"sweep":               recordSweep,
		"history":             recordHistory,
		"names":               recordNames,
		"vacant":              recordVacant,
		"vacant-again":        recordVacantAgain,
		"vacant-held":         recordVacantHeld,
		"tidy":                recordTidy,
		"revision":            recordRevision,
		"commit":              recordCommit,
		"commit-again":        recordCommitAgain,
		"outcome-first":       recordOutcomeFirst,
		"outcome-none":        recordOutcomeNone,
		"outcome":             recordOutcome,
		"forget":              recordForget,
		"result":              recordResult,
		"results":             recordResults,
	}
}

func recordFirstUse(t *testing.T, r *recorder) {
	r.record(func() { contendAndTry(t, r.src, "lock", longClaim()) })
}

func recordAcquire(t *testing.T, r *recorder) {
	r.warm(t)
	r.record(func() { contendAndTry(t, r.src, "lock", longClaim()) })
}

func recordAcquireLegacy(t *testing.T, r *recorder) {
	r.legacy(t)
	recordAcquire(t, r)
}

// The time that a staged directory got when it was made is a sign of life for
// half a heartbeat only: later the contender gives one before it believes.
func recordAcquireAfterWait(t *testing.T, r *recorder) {
	r.warm(t)
	holder := contendAndTry(t, r.rival, "lock", longClaim())
	const beat = 2 * time.Millisecond
	c := contend(t, r.src, "lock", source.Claim{TTL: long, Heartbeat: beat})
	refuse(t, c)
	release(t, holder)
	time.Sleep(beat)
	r.record(func() { try(t, c) })
}

// A crash between the two removals of a release leaves an empty directory.
func recordAcquireEmpty(t *testing.T, r *recorder) {
	r.warm(t)
	emptyDirectory(t, r.base, "lock")
	r.record(func() { contendAndTry(t, r.src, "lock", longClaim()) })
}

func recordRefused(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", longClaim())
	r.record(func() { refuse(t, contend(t, r.src, "lock", longClaim())) })
}

// A waiter's further attempt is one request and nothing else, however long it waits.
func recordRefusedAgain(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", longClaim())
	c := contend(t, r.src, "lock", longClaim())
	refuse(t, c)
	r.record(func() { refuse(t, c) })
	require.Regexp(t, `^rename \S+ -> \.locks/lock = \w+\n$`, r.trace.String())
}

func recordGiveUp(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", longClaim())
	c := contend(t, r.src, "lock", longClaim())
	refuse(t, c)
	r.record(func() { closed(t, c) })
}

func recordHeartbeat(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	r.record(func() { require.NoError(t, lease.Renew(t.Context())) })
}

// From the second on, a sign of life is two requests on NFS: statcached asks nobody.
func recordHeartbeatAgain(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	require.NoError(t, lease.Renew(t.Context()))
	r.record(func() { require.NoError(t, lease.Renew(t.Context())) })
}

func recordRelease(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	r.record(func() { release(t, lease) })
}

func recordReleaseWithJob(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", jobClaim())
	require.NoError(t, lease.MarkJob(t.Context(), someJob(r.self)))
	r.record(func() { release(t, lease) })
}

func recordMarkJob(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", jobClaim())
	r.record(func() { require.NoError(t, lease.MarkJob(t.Context(), someJob(r.self))) })
}

func jobClaim() source.Claim {
	claim := longClaim()
	claim.Job = true
	return claim
}

func recordFence(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	r.record(func() { fence(t, lease) })
}

func recordFenceAgain(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	first := fence(t, lease)
	r.record(func() { require.Greater(t, fence(t, lease), first) })
}

func fence(t *testing.T, lease source.Lease) uint64 {
	t.Helper()
	number, err := lease.Fence(t.Context())
	require.NoError(t, err)
	return number
}

func recordLookFree(t *testing.T, r *recorder) {
	r.warm(t)
	o := observe(t, r.src, "lock", source.Patience{})
	r.record(func() { require.Equal(t, source.StateFree, look(t, o).State) })
}

func recordLook(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", longClaim())
	o := observe(t, r.src, "lock", source.Patience{})
	r.record(func() { require.Equal(t, source.StateHeld, look(t, o).State) })
}

func recordLookAgain(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", longClaim())
	o := observe(t, r.src, "lock", source.Patience{})
	look(t, o)
	r.record(func() { require.Equal(t, source.StateHeld, look(t, o).State) })
}

func recordLookAfterAChange(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.rival, "lock", jobClaim())
	o := observe(t, r.src, "lock", source.Patience{})
	look(t, o)
	require.NoError(t, lease.MarkJob(t.Context(), someJob(r.self)))
	r.record(func() { require.Equal(t, source.StateHeld, look(t, o).State) })
}

func recordBreak(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", abandonedBy(theDead(r.self)))
	o := observe(t, r.src, "lock", source.Patience{})
	require.Equal(t, source.StateDead, look(t, o).State)
	r.record(func() { require.NoError(t, o.Break(t.Context())) })
}

func recordSweep(t *testing.T, r *recorder) {
	r.warm(t)
	_, err := r.rival.Contend(t.Context(), "lock", abandonedBy(theDead(r.self)), source.Patience{})
	require.NoError(t, err)
	r.record(func() {
		swept, err := r.src.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, swept, 1)
	})
}

func recordHistory(t *testing.T, r *recorder) {
	r.warm(t)
	r.record(func() {
		e := source.Event{Time: time.Now(), What: source.EventAcquired, Name: "lock"}
		require.NoError(t, r.src.Append(t.Context(), e))
	})
}

func recordNames(t *testing.T, r *recorder) {
	r.warm(t)
	contendAndTry(t, r.rival, "lock", longClaim())
	r.record(func() {
		names, err := r.src.Names(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"lock"}, names)
	})
}

func recordCommit(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	outcome(t, lease, source.ErrNoResult)
	r.record(func() { commit(t, lease, 1) })
}

// A further attempt takes the place of the one before.
func recordCommitAgain(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	commit(t, lease, 1)
	r.record(func() { commit(t, lease, 2) })
}

func recordOutcomeFirst(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	r.record(func() { outcome(t, lease, source.ErrNoResult) })
}

func recordOutcomeNone(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	outcome(t, lease, source.ErrNoResult)
	r.record(func() { outcome(t, lease, source.ErrNoResult) })
}

func recordOutcome(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	commit(t, lease, 1)
	r.record(func() { outcome(t, lease, nil) })
}

func recordForget(t *testing.T, r *recorder) {
	r.warm(t)
	lease := contendAndTry(t, r.src, "lock", longClaim())
	commit(t, lease, 1)
	r.record(func() { require.NoError(t, committer(lease).Forget(t.Context())) })
}

func recordResult(t *testing.T, r *recorder) {
	r.warm(t)
	commit(t, contendAndTry(t, r.rival, "lock", longClaim()), 1)
	r.record(func() {
		result, err := r.src.Result(t.Context(), "lock")
		require.NoError(t, err)
		require.True(t, result.OK())
	})
}

func recordResults(t *testing.T, r *recorder) {
	r.warm(t)
	commit(t, contendAndTry(t, r.rival, "lock", longClaim()), 1)
	r.record(func() {
		names, err := r.src.Results(t.Context())
		require.NoError(t, err)
		require.Equal(t, []string{"lock"}, names)
	})
}
