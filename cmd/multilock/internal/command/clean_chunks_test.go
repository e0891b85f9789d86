package command

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/fslock/fslocktest"
	"github.com/multilock/go/multilock/source"
)

// A chunk's results are kept if a process has started a part that was returned from it, even if nothing is
// recorded about the part.
func TestChunkWhosePartIsHeld(t *testing.T) {
	src := fslocktest.Open(t, fslock.Options{Base: t.TempDir()})
	take := func(from, to int) *multilock.Lock {
		lock, err := multilock.TryAcquire(t.Context(), src, joblist.ChunkName(source.Range{From: from, To: to}), multilock.Options{})
		require.NoError(t, err)
		return lock
	}
	for _, c := range []*source.Chunk{
		{From: 1, To: 8, Returned: []source.Range{{From: 5, To: 8}}, Jobs: []source.ChunkJob{{Number: 1, Name: "one", Attempt: 1}}},
		{From: 5, To: 8, Returned: []source.Range{{From: 7, To: 8}}, Jobs: []source.ChunkJob{{Number: 5, Name: "five", Attempt: 1}}},
	} {
		lock := take(c.From, c.To)
		c.Count()
		require.NoError(t, lock.Commit(t.Context(), multilock.Result{Attempt: 1, By: lock.Record().Holder.Identity, Chunk: c}))
		require.NoError(t, lock.Release(t.Context()))
	}
	f := forgetting{cleanOptions: &cleanOptions{}, src: &place.Source{Locks: src}, ledger: src}
	forget := func() ([]string, error) {
		names, err := src.Results(t.Context())
		require.NoError(t, err)
		nests := joblist.Nests(names)
		require.Len(t, nests, 1)
		names, err = f.chunk(t.Context(), nests[0])
		held, failed := src.Names(t.Context())
		require.NoError(t, failed)
		require.Subset(t, []string{"#jobs-7-8"}, held, "those of clean are given back")
		return names, err
	}
	part := take(7, 8)
	names, err := forget()
	require.ErrorIs(t, err, multilock.ErrHeld)
	require.Equal(t, []string{"#jobs-1-8", "#jobs-5-8"}, names)
	recorded, err := src.Results(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"#jobs-1-8", "#jobs-5-8"}, recorded)
	require.NoError(t, part.Release(t.Context()))
	_, err = src.Publish(t.Context(), []byte("one\n"))
	require.NoError(t, err)
	board, err := src.OpenProgressMap(t.Context())
	require.NoError(t, err)
	require.NoError(t, board.Write(t.Context(), 1, 1))
	names, err = forget()
	read, failed := board.Read(t.Context(), 8)
	require.NoError(t, errors.Join(failed, board.Close()))
	require.Empty(t, read, "who forgets all may end before the last chunk, and hosts believed that these are done")
	require.NoError(t, err)
	require.Equal(t, []string{"#jobs-5-8", "#jobs-1-8"}, names)
	recorded, err = src.Results(t.Context())
	require.NoError(t, err)
	require.Empty(t, recorded)
}
