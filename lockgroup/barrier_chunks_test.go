package lockgroup_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// chunkPlace is a place with results of chunks that counts how they are read.
type chunkPlace struct{ *grouptest.Place }

func (p chunkPlace) Summary(ctx context.Context, name string) (multilock.Result, error) {
	r, err := p.Result(ctx, name)
	if r.Chunk != nil {
		short := *r.Chunk
		short.Jobs, r.Chunk = nil, &short
	}
	_ = p.Enter("summary")
	return r, err
}

func (p chunkPlace) Current(ctx context.Context, name string) (multilock.Result, error) {
	return p.Result(ctx, name)
}

func (p chunkPlace) OpenProgressMap(context.Context) (source.ProgressMap, error) {
	return nil, multilock.ErrUnsupported
}

func (p chunkPlace) DropProgressMap(context.Context) error { return nil }

// whole returns how many results were read completely.
func (p chunkPlace) whole() int { return p.Count("result") - p.Count("summary") }

// chunkOf returns the result of a chunk in which ended jobs have ended, with the given exit codes by
// number. Jobs are called job-1 and so on.
func chunkOf(from, to, ended int, exits map[int]int) multilock.Result {
	c := &source.Chunk{From: from, To: to}
	for n := from; n < from+ended; n++ {
		c.Jobs = append(c.Jobs, source.ChunkJob{Number: n, Name: fmt.Sprint("job-", n), Exit: exits[n], Attempt: 1})
	}
	c.Count()
	r := multilock.Result{Name: joblist.ChunkName(source.Range{From: from, To: to}), Token: "t", Final: c.Final(), Chunk: c}
	if c.Failed > 0 {
		r.Exit = 1
	}
	return r
}

func inChunkPlace(t *testing.T, test func(t *testing.T, p chunkPlace)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, chunkPlace{grouptest.NewPlace()}) })
}

// For a chunk without failures only the number of jobs is read, once.
// Rule: members
func TestBarrierCountsTheJobsOfChunks(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, p chunkPlace) {
		for i := range 9 {
			p.Commit(chunkOf(4*i+1, 4*i+4, 4, nil))
		}
		p.Commit(grouptest.Succeeded("alone"))
		for minute := 1; minute <= 4; minute++ {
			time.AfterFunc(time.Duration(minute)*time.Minute, func() { p.Commit(chunkOf(37, 40, minute, nil)) })
		}
		report, err := wait(t, p, lockgroup.BarrierOptions{Expect: 41})
		require.NoError(t, err)
		require.Equal(t, lockgroup.Report{Done: 41}, report)
		require.Zero(t, p.whole())
		require.LessOrEqual(t, p.Count("summary"), 10+2*4, "what is final is read once, what is not when something has changed")
	})
}

// Failed jobs are reported by name, and their chunks are read completely.
// Rule: members
func TestBarrierNamesTheFailedJobsOfChunks(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, p chunkPlace) {
		p.Commit(chunkOf(1, 4, 4, nil))
		p.Commit(chunkOf(5, 8, 3, map[int]int{6: 3}))
		time.AfterFunc(time.Minute, func() { p.Commit(chunkOf(5, 8, 4, map[int]int{6: 3})) })
		report, err := wait(t, p, lockgroup.BarrierOptions{Expect: 8})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, 7, report.Done)
		require.Len(t, report.Failed, 1)
		require.Equal(t, "job-6", report.Failed[0].Name)
		require.Equal(t, 3, report.Failed[0].Exit)
	})
}

// A job that failed first, and then succeeded in the same chunk, is done.
// Rule: members
func TestBarrierForgetsAFailureThatWasMadeGood(t *testing.T) {
	for _, opt := range []lockgroup.BarrierOptions{{Expect: 4}, {Members: []string{"job-2", "job-4"}}} {
		inChunkPlace(t, func(t *testing.T, p chunkPlace) {
			p.Commit(chunkOf(1, 4, 3, map[int]int{2: 3}))
			time.AfterFunc(time.Minute, func() { p.Commit(chunkOf(1, 4, 4, nil)) })
			report, err := wait(t, p, opt)
			require.NoError(t, err)
			require.Equal(t, max(opt.Expect, len(opt.Members)), report.Done)
		})
	}
}

// Named jobs are found in any chunk; others do not matter.
// Rule: members
func TestBarrierForMembersInChunks(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, p chunkPlace) {
		p.Commit(chunkOf(1, 4, 4, map[int]int{1: 7}))
		p.Commit(chunkOf(5, 8, 2, map[int]int{5: 7}))
		p.Hold("#jobs-5-8", grouptest.Alive("node1"))
		time.AfterFunc(time.Minute, func() { p.Commit(chunkOf(5, 8, 3, map[int]int{5: 7, 7: 9})) })
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"job-2", "job-6", "job-7"}})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, 2, report.Done)
		require.Len(t, report.Failed, 1)
		require.Equal(t, "job-7", report.Failed[0].Name)
		require.Empty(t, report.Missing)
		require.LessOrEqual(t, p.whole(), 1+3, "a chunk that is final is read once")
	})
}

// A dead holder of a chunk concerns any member that is not done yet.
// Rule: members, barrier-dead
func TestBarrierForMembersBuriesTheHolderOfAChunk(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, p chunkPlace) {
		p.Commit(chunkOf(1, 4, 2, nil))
		p.Hold("#jobs-1-4", grouptest.Seen(multilock.StateDead, "node1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b, err := lockgroup.NewBarrier(p, lockgroup.BarrierOptions{Members: []string{"job-2", "job-4"}})
		require.NoError(t, err)
		report, err := b.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"job-4"}, report.Missing)
		require.Equal(t, []string{"#jobs-1-4"}, p.Broken)
		require.Len(t, report.Crashed, 1)

		p.Commit(chunkOf(1, 4, 4, nil))
		report, err = wait(t, p, lockgroup.BarrierOptions{Members: []string{"job-2", "job-4"}})
		require.NoError(t, err)
		require.Empty(t, report.Crashed)
	})
}

// No job of a chunk with an unreadable result counts as done, and the barrier does not wait for these jobs,
// whatever their names are.
// Rule: members
func TestBarrierDoesNotWaitForAChunkThatNobodyCanRead(t *testing.T) {
	for _, opt := range []lockgroup.BarrierOptions{{Expect: 8}, {Members: []string{"job-2", "job-6"}}} {
		inChunkPlace(t, func(t *testing.T, p chunkPlace) {
			p.Commit(chunkOf(1, 4, 4, nil))
			p.Commit(multilock.Result{Name: "#jobs-5-8", Foreign: "torn"})
			report, err := wait(t, p, opt)
			require.ErrorIs(t, err, lockgroup.ErrNotDone)
			require.Equal(t, "#jobs-5-8", report.Failed[0].Name)
			require.Equal(t, "torn", report.Failed[0].Foreign)
		})
	}
}

// Of a million jobs a barrier only keeps the numbers, and the failures.
// Rule: members
func TestBarrierKeepsNothingOfSuccesses(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, p chunkPlace) {
		const chunks = 200
		for i := range chunks {
			p.Commit(chunkOf(64*i+1, 64*i+64, 64, nil))
		}
		allocs := testing.AllocsPerRun(2, func() {
			report, err := wait(t, p, lockgroup.BarrierOptions{Expect: 64 * chunks})
			require.NoError(t, err)
			require.Equal(t, 64*chunks, report.Done)
		})
		require.Less(t, allocs, float64(64*chunks/2), "less than there are jobs")
	})
}

func committedChunk(minutes int, token string, r multilock.Result) source.Event {
	e := source.CommittedEvent(r, time.Now().Add(-time.Duration(minutes)*time.Minute))
	e.Token = token
	return e
}

// A barrier without members finds unfinished chunks in the history, and their unfinished jobs in their
// results.
// Rule: barrier-ends
func TestBarrierAsksHowTheJobsOfChunksEnded(t *testing.T) {
	broke := func(minutes int, token string) source.Event {
		e := happened(minutes, source.EventBroke, token)
		e.Name = "#jobs-1-4"
		return e
	}
	for name, c := range map[string]struct {
		events func() []source.Event
		record multilock.Result
		failed []string
		died   int
	}{
		"success": {func() []source.Event { return []source.Event{committedChunk(9, "1", chunkOf(1, 4, 4, nil))} }, chunkOf(1, 4, 4, nil), nil, 0},
		"failure": {func() []source.Event {
			return []source.Event{committedChunk(9, "1", chunkOf(1, 4, 2, nil)), committedChunk(8, "1", chunkOf(1, 4, 4, map[int]int{3: 1, 4: 1}))}
		}, chunkOf(1, 4, 4, map[int]int{3: 1, 4: 1}), []string{"job-3", "job-4"}, 0},
		"success the second time": {func() []source.Event {
			return []source.Event{committedChunk(9, "1", chunkOf(1, 4, 4, map[int]int{3: 1})), committedChunk(8, "2", chunkOf(1, 4, 4, nil))}
		}, chunkOf(1, 4, 4, nil), nil, 0},
		"a holder that died": {func() []source.Event {
			return []source.Event{committedChunk(9, "1", chunkOf(1, 4, 2, map[int]int{1: 1})), broke(8, "1")}
		}, chunkOf(1, 4, 2, map[int]int{1: 1}), []string{"job-1"}, 1},
		"a holder that died when all was done": {func() []source.Event {
			return []source.Event{committedChunk(9, "1", chunkOf(1, 4, 4, nil)), broke(8, "1")}
		}, chunkOf(1, 4, 4, nil), nil, 0},
		"a holder that died, and another one that did the rest": {func() []source.Event {
			return []source.Event{committedChunk(9, "1", chunkOf(1, 4, 2, nil)), broke(8, "1"), committedChunk(7, "2", chunkOf(1, 4, 4, nil))}
		}, chunkOf(1, 4, 4, nil), nil, 0},
		"no result any more": {func() []source.Event {
			return []source.Event{committedChunk(8, "1", chunkOf(1, 4, 4, map[int]int{3: 1}))}
		}, multilock.Result{Name: "other", Final: true}, []string{"#jobs-1-4"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &placeWithHistory{Place: grouptest.NewPlace(), events: c.events()}
				p.Commit(c.record)
				report, err := wait(t, p, lockgroup.BarrierOptions{})
				require.Equal(t, len(c.failed)+c.died == 0, err == nil)
				var failed []string
				for _, r := range report.Failed {
					failed = append(failed, r.Name)
				}
				require.Equal(t, c.failed, failed)
				require.Len(t, report.Crashed, c.died)
			})
		})
	}
}

// listedPlace is a chunkPlace with a list of jobs, by their names.
type listedPlace struct {
	chunkPlace
	names *[]string
}

func (p listedPlace) Publish(context.Context, []byte) ([]byte, error) {
	return nil, multilock.ErrUnsupported
}

func (p listedPlace) Retract(context.Context) error { return multilock.ErrUnsupported }

func (p listedPlace) OpenManifest(context.Context) (io.ReadCloser, error) {
	list := "#chunks of 4\n" + strings.Join(*p.names, "\twork\n") + "\twork\n"
	return io.NopCloser(strings.NewReader(list)), p.Enter("manifest")
}

func newListedPlace(p chunkPlace, jobs int) listedPlace {
	listed := listedPlace{chunkPlace: p, names: new([]string)}
	for n := range jobs {
		*listed.names = append(*listed.names, fmt.Sprint("job-", n+1))
	}
	return listed
}

// If the list shows the chunks of members, the barrier only reads those and waits for those.
// Rule: members
func TestBarrierForMembersKnowsTheirChunks(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, chunks chunkPlace) {
		p := newListedPlace(chunks, 400)
		for from := 1; from < 397; from += 4 {
			p.Commit(chunkOf(from, from+3, 4, nil))
		}
		p.Commit(multilock.Result{Name: "#jobs-9-12", Foreign: "torn"})
		p.Hold("#jobs-5-8", grouptest.Seen(multilock.StateDead, "node1"))
		returned := chunkOf(1, 4, 2, nil)
		returned.Chunk.Returned, returned.Final = []source.Range{{From: 3, To: 4}}, true
		p.Commit(returned)
		time.AfterFunc(time.Minute, func() { p.Commit(chunkOf(3, 4, 2, nil)) })
		time.AfterFunc(2*time.Minute, func() { p.Commit(multilock.Result{Name: "#jobs-397-400", Foreign: "torn"}) })
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"job-2", "job-4", "job-398", "job-400"}})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Empty(t, p.Broken, "no member is in that one's chunk")
		require.Empty(t, report.Crashed)
		require.Equal(t, 2, report.Done)
		require.Len(t, report.Failed, 1)
		require.Equal(t, "#jobs-397-400", report.Failed[0].Name)
		require.Less(t, p.whole(), 8)
	})
}

// A list that replaced the first one has the members in other chunks.
// Rule: members
func TestBarrierForMembersLooksThemUpAnew(t *testing.T) {
	inChunkPlace(t, func(t *testing.T, chunks chunkPlace) {
		p := newListedPlace(chunks, 8)
		p.Commit(chunkOf(1, 4, 4, nil))
		time.AfterFunc(time.Minute, func() {
			slices.Reverse(*p.names)
			other := chunkOf(1, 4, 4, nil)
			for i := range other.Chunk.Jobs {
				other.Chunk.Jobs[i].Name = (*p.names)[i]
			}
			p.Commit(other)
		})
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"job-1", "job-7", "job-8"}})
		require.NoError(t, err)
		require.Equal(t, 3, report.Done)
	})
}
