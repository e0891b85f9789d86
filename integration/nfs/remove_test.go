package nfs_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A client that takes a name for a directory's asks the server to remove it, and version 4 has
// one request for files and directories: so the rmdir of a directory that has become a file
// removes the file. A removal that is sent again when it is late does the same. Where the name
// may be a result by then, the lock does not use rmdir.
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

// A host that has seen the directory of another's question in the place of a result reads the
// result all the same.
// Rule: outcome, readers, I7
func TestResultInThePlaceOfARememberedDirectory(t *testing.T) {
	eachVersion(t, func(t *testing.T, h host, others []host) {
		p := newPlace(t)
		here, there := p.source(t, h), p.source(t, others[0])
		first := plant(t, there, "job", long).(source.Committer)
		_, err := first.Outcome(within(t))
		require.ErrorIs(t, err, source.ErrNoResult)

		done, elsewhere := p.dir(t, h, doneOfJobs...), p.dir(t, others[0], doneOfJobs...)
		require.NoError(t, elsewhere.Mkdir("job", 0o777)) // in the middle of a question
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
		_ = next.Release(within(t)) // it is not what this is about
	})
}

// doneOfJobs is where the results of the group are.
var doneOfJobs = []string{".multilock", "groups", ".locks", "done"}
