package nfs_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A client that has cached a name as a directory sends its rmdir to the server. Version 4 has one
// request for removing files and directories, so the rmdir of a directory that has become a file
// removes the file. So does a retransmitted removal that arrives late. Where the name may be a
// result by then, the lock does not use rmdir.
// Rule: outcome
func TestRmdirOfWhatIsAFileByNow(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		dir, other := p.dir(t, h), p.dir(t, others[0])
		require.NoError(t, dir.Mkdir("probe", 0o777))
		require.NoError(t, other.Rmdir("probe"))
		result, err := other.OpenDurable("probe", 0o666)
		require.NoError(t, err)
		require.NoError(t, result.Close())

		err = dir.Rmdir("probe")
		if h.version == "3" {
			require.ErrorIs(t, err, syscall.ENOTDIR)
			require.Equal(t, []string{"probe"}, p.entries(t))
			return
		}
		require.NoError(t, err)
		require.Empty(t, p.entries(t), "the file is gone")
	})
}

// A host that has cached the temporary directory of another host's check for a result still reads
// the result that replaces the directory.
// Rule: outcome, readers, I7
func TestResultInThePlaceOfARememberedDirectory(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		here, there := p.source(t, h), p.source(t, others[0])
		first := plant(t, there, "job", long).(source.Committer)
		_, err := first.Outcome(within(t))
		require.ErrorIs(t, err, source.ErrNoResult)

		done, elsewhere := p.dir(t, h, doneOfJobs...), p.dir(t, others[0], doneOfJobs...)
		require.NoError(t, elsewhere.Mkdir("job", 0o777)) // as during another host's check for a result
		_, err = done.StatName("job")
		require.NoError(t, err)
		require.NoError(t, elsewhere.Rmdir("job"))
		lease := first.(source.Lease)
		job := source.Result{Name: "job", Token: lease.Record().Token, By: process.Identity{Host: others[0].name}, Attempt: 1, Final: true}
		require.NoError(t, first.Commit(within(t), job))
		require.NoError(t, lease.Release(within(t)))

		next := plant(t, here, "job", long)
		result, err := next.(source.Committer).Outcome(within(t))
		require.NoError(t, err)
		require.Equal(t, lease.Record().Token, result.Token, result.Foreign)
		_ = next.Release(within(t)) // the test is not about the release
	})
}

// doneOfJobs is the directory of the group's results.
var doneOfJobs = []string{".multilock", "groups", ".locks", "done"}
