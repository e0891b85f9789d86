package fslock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

// committing is the rename that commits or removes a result, in the given phase.
func committing(base string, phase faultfs.Phase, assessment func(faultfs.Op) error) faultfs.Injector {
	return at("rename", phase, resultPath(base), assessment)
}

// held is a held lock, in a place with faults.
func held(t *testing.T, s scene) (base string, faulty *faultfs.FS, lease source.Lease) {
	t.Helper()
	base, faulty, src := contested(t, s)
	return base, faulty, contendAndTry(t, src, sweptName, longClaim())
}

func tryCommit(t *testing.T, lease source.Lease, attempt int) error {
	t.Helper()
	return committer(lease).Commit(t.Context(), ended(lease.Record(), attempt, 0))
}

// breakByForce breaks the lock of a live holder.
func breakByForce(t *testing.T, s scene, base string) {
	t.Helper()
	src := open(t, fslock.Options{Base: base, FS: sharedFS(), LegacyPeers: s.legacy})
	_, err := multilock.Break(within(t), src, sweptName, multilock.BreakOptions{Alive: true})
	require.NoError(t, err)
}

// A rename whose reply was lost, and whose repetition found nothing, has committed the result all the same.
// Rule: commit
func TestLostReplyOfTheCommit(t *testing.T) {
	for _, s := range modes() {
		for _, errno := range []syscall.Errno{syscall.ENOENT, syscall.ESTALE, syscall.EIO, syscall.ETIMEDOUT, syscall.EINTR} {
			t.Run(s.name+"/"+unix.ErrnoName(errno), func(t *testing.T) {
				base, faulty, lease := held(t, s)
				faulty.Inject(committing(base, faultfs.After, times(1, answering(errno))))
				commit(t, lease, 1)
				require.Equal(t, lease.Record().Token, recordedToken(t, base))
				release(t, lease)
				requireTidy(t, base)
			})
		}
	}
}

// An outcome does not count if the lock cannot be verified: there may be another holder by now, with its
// own result.
// Rule: outcome
func TestOutcomeThatCannotBeVerified(t *testing.T) {
	for _, attempts := range []int{0, 1} {
		t.Run(fmt.Sprintf("after %d attempts", attempts), func(t *testing.T) {
			_, faulty, lease := held(t, scene{})
			for n := range attempts {
				commit(t, lease, n+1)
			}
			faulty.Inject(denying("statname", syscall.EIO, -1))
			_, err := committer(lease).Outcome(t.Context())
			require.ErrorIs(t, err, syscall.EIO)
			require.NotErrorIs(t, err, source.ErrNoResult)
			faulty.Inject(nil)
			release(t, lease)
		})
	}
}

// Some clients report a rename that found nothing as a success.
// Rule: commit
func TestFalseSuccessOfTheCommit(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	faulty.Inject(committing(base, faultfs.Before, times(1, answering(faultfs.ErrPretend))))
	commit(t, lease, 1)
	require.Equal(t, lease.Record().Token, recordedToken(t, base))

	faulty.Inject(committing(base, faultfs.Before, func(faultfs.Op) error {
		breakByForce(t, scene{}, base)
		return faultfs.ErrPretend
	}))
	require.ErrorIs(t, tryCommit(t, lease, 2), source.ErrLost)
}

// The mount gave up on the rename, and the server carries it out later: at any of the operations that
// follow, or after all of them. The answer of Commit remains true.
// Rule: commit, I4
func TestCommitThatIsCarriedOutLater(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ETIMEDOUT} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			for delay, over := 1, false; !over; delay++ {
				over = runLateCommit(t, errno, delay)
			}
		})
	}
}

func runLateCommit(t *testing.T, errno syscall.Errno, delay int) (over bool) {
	base, faulty, lease := held(t, scene{})
	var z zombie
	faulty.Inject(z.inject(resultPath(base), errno, delay))
	err := tryCommit(t, lease, 1)
	faulty.Inject(nil)
	over = !z.landed
	z.land()
	if err == nil {
		require.Equal(t, lease.Record().Token, recordedToken(t, base))
	} else {
		require.NotErrorIs(t, err, source.ErrUnsure, "it could be taken back")
		require.NotErrorIs(t, err, source.ErrLost)
		require.Empty(t, recordedToken(t, base))
		commit(t, lease, 1)
	}
	release(t, lease)
	requireTidy(t, base)
	return over
}

// A commit that cannot be withdrawn is neither a success nor a failure.
// Rule: commit, I4
func TestCommitThatCannotBeTakenBack(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	faulty.Inject(faultfs.Chain(committing(base, faultfs.Before, answering(syscall.EIO)), denying("unlink", syscall.EIO, -1)))
	require.ErrorIs(t, tryCommit(t, lease, 1), source.ErrUnsure)
	require.Error(t, lease.Release(t.Context()), "the file of the result must go before the lock does")
	require.NotEmpty(t, tokenOnDisk(t, base))
	faulty.Inject(nil)
	release(t, lease)
	requireTidy(t, base)
}

// Once its lock is broken, a holder can neither commit nor remove a result, at any step.
// Rule: commit, forget, I7
func TestCommitOfABrokenHolder(t *testing.T) {
	for _, s := range modes() {
		t.Run(s.name, func(t *testing.T) {
			base, faulty, lease := held(t, s)
			commit(t, lease, 1)
			before := recordedToken(t, base)
			faulty.Inject(committing(base, faultfs.Before, times(1, func(faultfs.Op) error {
				breakByForce(t, s, base)
				return nil
			})))
			require.ErrorIs(t, tryCommit(t, lease, 2), source.ErrLost)
			require.ErrorIs(t, tryCommit(t, lease, 3), source.ErrLost)
			require.ErrorIs(t, committer(lease).Forget(t.Context()), source.ErrLost)
			_, err := committer(lease).Outcome(t.Context())
			require.ErrorIs(t, err, source.ErrLost)
			require.Equal(t, before, recordedToken(t, base))
			require.ErrorIs(t, lease.Release(t.Context()), source.ErrLost)
			giveBack(t, take(t, base, s, elsewhere(t)))
			requireTidy(t, base)
		})
	}
}

// If a holder writes its result while the lock is being broken, the directory does not become free: it
// commits, or leaves an orphaned entry that any contender may clear.
// Rule: commit, break
func TestResultWrittenDuringABreak(t *testing.T) {
	for _, s := range modes() {
		t.Run(s.name, func(t *testing.T) {
			base, _, lease := held(t, s)
			require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), sweptName+".result"), []byte("half a res"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), sweptName+".forgot"), nil, 0o600))
			require.NoError(t, os.Remove(filepath.Join(lockPath(base), sweptName+".locked")))
			require.ErrorIs(t, lease.Renew(t.Context()), source.ErrLost)
			lock := take(t, base, s, elsewhere(t))
			_, err := lock.Outcome(t.Context())
			require.ErrorIs(t, err, source.ErrNoResult)
			giveBack(t, lock)
			requireTidy(t, base)
		})
	}
}

// A result that could not be written is not recorded, and blocks nothing. On a local filesystem a disk
// error occurs before the result has its name, so no reader has seen it.
// Rule: commit
func TestResultThatCannotBeWritten(t *testing.T) {
	nfs, local := vfs.FileSystem{Type: "test", NFS: true}, vfs.FileSystem{Type: "test", Local: true}
	ordered := vfs.FileSystem{Type: "test", Local: true, Ordered: true}
	for _, c := range []struct {
		kind  string
		errno syscall.Errno
		on    vfs.FileSystem
	}{
		{"create", syscall.ENOSPC, nfs}, {"write", syscall.ENOSPC, nfs}, {"sync", syscall.ENOSPC, nfs}, {"rename", syscall.ENOSPC, nfs},
		{"sync", syscall.EIO, local}, {"flush", syscall.EIO, ordered},
	} {
		t.Run(c.kind+" "+c.errno.Error(), func(t *testing.T) {
			base, faulty, lease := holding{kind: c.on}.hold(t)
			faulty.Inject(denying(c.kind, c.errno, -1))
			err := tryCommit(t, lease, 1)
			require.ErrorIs(t, err, c.errno)
			require.Equal(t, c.errno == syscall.ENOSPC, strings.Contains(err.Error(), "free some space"))
			require.NotErrorIs(t, err, source.ErrUnsure)
			require.Empty(t, recordedToken(t, base))
			require.NotContains(t, namesIn(t, lockPath(base)), sweptName+".result")
			faulty.Inject(nil)
			outcome(t, lease, source.ErrNoResult)
			commit(t, lease, 1)
			require.Equal(t, lease.Record().Token, recordedToken(t, base))
			release(t, lease)
		})
	}
}

// The directory of results may be removed at any moment.
// Rule: commit, outcome
func TestResultsAreRemovedMeanwhile(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	commit(t, lease, 1)
	remove := func() { require.NoError(t, os.RemoveAll(filepath.Dir(resultPath(base)))) }
	remove()
	outcome(t, lease, source.ErrNoResult)
	remove()
	require.NoError(t, committer(lease).Forget(t.Context()))
	remove()
	commit(t, lease, 2)
	faulty.Inject(committing(base, faultfs.Before, times(1, func(faultfs.Op) error {
		remove()
		return nil
	})))
	commit(t, lease, 3)
	require.Equal(t, 3, outcome(t, lease, nil).Attempt)

	src := open(t, fslock.Options{Base: base, FS: sharedFS()})
	_, err := src.Result(t.Context(), sweptName)
	require.NoError(t, err)
	remove()
	_, err = src.Result(t.Context(), sweptName)
	require.ErrorIs(t, err, source.ErrNoResult)
	names, err := src.Results(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
}

// While a process on its host reads a result, NFS keeps a replaced result under another name.
// Rule: readers
func TestSillyRenamedResultIsNoName(t *testing.T) {
	base, _, lease := held(t, scene{})
	commit(t, lease, 1)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(resultPath(base)), ".nfs000000000123"), []byte("{}\n"), 0o600))
	names, err := open(t, fslock.Options{Base: base, FS: sharedFS()}).Results(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{sweptName}, names)
}

// A result whose name is not on stable storage may be gone after a crash: it is not reported as recorded,
// whether the rename was answered or its reply was lost.
// Rule: commit
func TestErrorOfTheDiskAfterTheResultHasItsName(t *testing.T) {
	for name, also := range map[string]faultfs.Injector{
		"answered":   func(faultfs.Op) error { return nil },
		"reply lost": answersLate("rename", syscall.EIO),
		"reply lost, and the look after it": faultfs.Chain(answersLate("rename", syscall.EIO),
			denyingAt("open", "done/"+sweptName, syscall.EIO, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			faulty := localFS()
			lock := acquire(t, open(t, fslock.Options{Base: fresh(t), FS: faulty}), sweptName, multilock.Options{})
			faulty.Inject(faultfs.Chain(also, denying("syncdir", syscall.EIO, -1)))
			require.ErrorIs(t, lock.Commit(t.Context(), ended(lock.Record(), 1, 0)), multilock.ErrUnsure)
			faulty.Inject(nil)
			require.NoError(t, lock.Commit(t.Context(), ended(lock.Record(), 1, 0)))
		})
	}
}

// answersLate loses the replies to all operations of a kind.
func answersLate(kind string, errno syscall.Errno) faultfs.Injector {
	return at(kind, faultfs.After, "", answering(errno))
}

// An entry that blocks a result and cannot be read, made or removed is reported.
// Rule: commit, outcome
func TestCommitMeetsAnError(t *testing.T) {
	result := sweptName + ".result"
	for name, c := range map[string]struct {
		inject faultfs.Injector
		told   error
		unsure bool
	}{
		"nobody can tell what is there": {faultfs.Chain(answersLate("rename", syscall.EIO),
			denyingAt("open", "done/"+sweptName, syscall.EIO, -1)), syscall.EIO, true},
		"nor take it back": {faultfs.Chain(denyingAt("rename", result, syscall.ESTALE, -1),
			denyingAt("unlink", result, syscall.EIO, -1)), syscall.EIO, true},
		"the results may not be opened":        {denyingAt("opendir", "groups", syscall.EACCES, -1), syscall.EACCES, false},
		"what an earlier one left cannot go":   {denyingAt("unlink", result, syscall.EACCES, -1), syscall.EACCES, false},
		"the directory of results was removed": {denyingAt("rename", result, syscall.ENOENT, 1), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			base, faulty, _ := contested(t, scene{})
			lease := contendAndTry(t, open(t, fslock.Options{Base: base, FS: faulty}), sweptName, longClaim())
			if !c.unsure {
				require.NoError(t, os.WriteFile(filepath.Join(lockPath(base), result), nil, 0o666))
			}
			faulty.Inject(c.inject)
			err := tryCommit(t, lease, 1)
			require.ErrorIs(t, err, c.told)
			require.Equal(t, c.unsure, errors.Is(err, multilock.ErrUnsure))
			faulty.Inject(nil)
			commit(t, lease, 2)
			require.Equal(t, 2, outcome(t, lease, nil).Attempt)
			release(t, lease)
			require.Error(t, tryCommit(t, lease, 3))
		})
	}
}

// If a client reports a failure as success, the result does not count as removed.
// Rule: forget
func TestFalseSuccessOfForgetting(t *testing.T) {
	base, faulty, lease := held(t, scene{})
	commit(t, lease, 1)
	faulty.Inject(committing(base, faultfs.Before, times(1, answering(faultfs.ErrPretend))))
	require.NoError(t, committer(lease).Forget(t.Context()))
	require.Empty(t, recordedToken(t, base))
	release(t, lease)
}

// A missing permission is an error, and never means that there is no result.
// Rule: outcome
func TestOutcomeMeetsAnError(t *testing.T) {
	for _, kind := range []string{"mkdir", "open"} {
		_, faulty, lease := held(t, scene{})
		commit(t, lease, 1)
		faulty.Inject(denyingAt(kind, "done/"+sweptName, syscall.EMFILE, -1))
		outcome(t, lease, syscall.EMFILE)
		faulty.Inject(nil)
		require.Equal(t, 1, outcome(t, lease, nil).Attempt)
	}
}

// A delayed rename of a probe's directory could take along a result that is committed in its place: in that
// case there is no answer, and the job is not run.
// Rule: outcome
func TestOutcomeIsInDoubtIfItsProbeIs(t *testing.T) {
	_, faulty, lease := held(t, scene{})
	faulty.Inject(denyingAt("rename", "done/"+sweptName, syscall.EIO, 1))
	outcome(t, lease, syscall.EIO)
	outcome(t, lease, source.ErrNoResult)
	commit(t, lease, 1)
	require.Equal(t, 1, outcome(t, lease, nil).Attempt)
	require.NoError(t, lease.Release(t.Context()))
}

// A directory that stays in place would block the result: the job is not run in that case either.
// Rule: outcome
func TestOutcomeIfItsProbeStays(t *testing.T) {
	_, faulty, lease := held(t, scene{})
	faulty.Inject(denyingAt("rename", "done/"+sweptName, syscall.EACCES, 1))
	_, err := committer(lease).Outcome(t.Context())
	require.ErrorContains(t, err, "move an earlier question's directory away")
	require.NotErrorIs(t, err, source.ErrNoResult)
	outcome(t, lease, source.ErrNoResult)
	require.NoError(t, lease.Release(t.Context()))
}

// A directory that a probe left in the lock's directory is removed with the lock, by a release and by a
// breaker.
// Rule: outcome, release, break
func TestProbeThatIsLeftInTheLock(t *testing.T) {
	_, faulty, lease := held(t, scene{})
	faulty.Inject(denyingAt("rmdir", sweptName+".forgot", syscall.EIO, 1))
	outcome(t, lease, source.ErrNoResult)
	require.NoError(t, lease.Release(t.Context()))
	base, faulty, lease := held(t, scene{})
	faulty.Inject(denyingAt("rmdir", sweptName+".forgot", syscall.EIO, 1))
	outcome(t, lease, source.ErrNoResult)
	breakByForce(t, scene{}, base)
	require.NoDirExists(t, filepath.Join(base, fslock.DefaultGroup, sweptName))
}
