package batch_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// A host that has seen a part, and is stopped while all results are deleted and other hosts start again,
// does not run their jobs; when they have died, it runs the whole chunk.
// Rule: give-back, forget-chunks
func TestPartOfAForgottenChunk(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		theirs := chunkOf(1, 4, source.ChunkJob{Number: 1, Name: "job001", Attempt: 1})
		theirs.Chunk.Returned = []source.Range{{From: 2, To: 4}}
		v.Commit(theirs)
		part := chunkOf(2, 4, source.ChunkJob{Number: 2, Name: "job002", Attempt: 1})
		part.Chunk.Returned = []source.Range{{From: 3, To: 4}}
		v.Commit(part)
		under := map[int]string{}
		b := prepare(t, v, ran.jobs(16, func(_ context.Context, a batch.Attempt) error {
			time.Sleep(time.Minute)
			under[a.Seq] = a.Lock.Record().Name
			return nil
		}), batch.Options{Workers: 1})
		end := make(chan batchEnd, 1)
		go func() {
			report, err := b.Run(inTime(t))
			end <- batchEnd{report, err}
		}()
		time.Sleep(5 * time.Minute)
		v.Forget("#jobs-2-4")
		v.Forget("#jobs-1-4")
		v.Hold("#jobs-1-4", grouptest.Alive("node7"))
		time.Sleep(20 * time.Minute)
		require.Equal(t, 12, ran.names())
		require.Less(t, v.Tried("#jobs-3-4"), 200, "that nobody holds what is no part any more is no news")
		v.Release("#jobs-1-4")
		got := <-end
		require.NoError(t, got.err)
		require.Equal(t, batch.Progress{Total: 16, Done: 16, Before: 2, Ran: 14}, got.report.Progress)
		ran.requireOnce(t, 14)
		require.Equal(t, []string{"#jobs-1-4", "#jobs-1-4"}, []string{under[3], under[4]})
	})
}

// A host that has read a result, and then gets the job as a part after the result was deleted, has nothing
// to do there: it does not acquire the lock repeatedly, and leaves it to other hosts.
// Rule: give-back
func TestPartThatWasDoneBefore(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		v.Latency = time.Millisecond
		job := func(number int) source.ChunkJob {
			return source.ChunkJob{Number: number, Name: fmt.Sprintf("job%03d", number), Attempt: 1}
		}
		whole := chunkOf(1, 4, job(1), job(2))
		whole.Chunk.Returned = []source.Range{{From: 3, To: 4}}
		v.Commit(whole)
		v.Hold("#jobs-3-4", grouptest.Alive("node7"))
		b, end := prepare(t, v, ran.jobs(16, succeeds), batch.Options{}), make(chan batchEnd, 1)
		go func() {
			report, err := b.Run(inTime(t))
			end <- batchEnd{report, err}
		}()
		time.Sleep(time.Minute)
		v.Forget(whole.Name)
		anew := grouptest.Alive("node7")
		anew.Record.Token = whole.Token
		v.Hold(whole.Name, anew)
		v.Release("#jobs-3-4")
		time.Sleep(time.Minute) // it finds that this is no longer a part, and claims the whole chunk
		whole = chunkOf(1, 4)
		whole.Chunk.Returned = []source.Range{{From: 1, To: 2}, {From: 3, To: 4}}
		v.Commit(whole)
		board, err := v.OpenProgressMap(t.Context())
		require.NoError(t, err)
		require.NoError(t, board.Write(t.Context(), 1, 77))
		got := <-end
		require.NoError(t, got.err)
		require.Equal(t, batch.Progress{Total: 16, Done: 16, Before: 2, Ran: 14}, got.report.Progress)
		ran.requireOnce(t, 14)
		require.Equal(t, 1, v.Tried("#jobs-1-2"))
	})
}

// A part is not begun while the whole chunk has a holder that has not written that the part is given back:
// it may be about to delete that record. If the holder is dead, the whole chunk is taken over first.
// Rule: give-back, forget-chunks
func TestPartOfWhatSomebodyMayForget(t *testing.T) {
	for what, state := range map[string]source.State{"held": multilock.StateHeld, "dead": multilock.StateDead} {
		t.Run(what, func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
				theirs := chunkOf(1, 4, source.ChunkJob{Number: 1, Name: "job001", Attempt: 1})
				theirs.Chunk.Returned = []source.Range{{From: 2, To: 4}}
				theirs.Chunk.Count()
				theirs.Final = true
				v.Commit(theirs)
				v.Hold("#jobs-1-4", grouptest.Seen(state, "node7"))
				b, end := prepare(t, v, ran.jobs(16, succeeds), batch.Options{Workers: 2}), make(chan batchEnd, 1)
				go func() {
					report, err := b.Run(inTime(t))
					end <- batchEnd{report, err}
				}()
				time.Sleep(time.Hour)
				require.Equal(t, map[source.State]int{multilock.StateHeld: 12, multilock.StateDead: 15}[state], ran.names())
				v.Release("#jobs-1-4")
				require.NoError(t, (<-end).err)
				ran.requireOnce(t, 15)
			})
		})
	}
}
