package batch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock/source"
)

// slow makes the jobs of a list take an hour each, unless their command is "quick".
func (c commands) slow(list []batch.Job) []batch.Job {
	for i := range list {
		list[i] = c.slowJob(list[i])
	}
	return list
}

func (c commands) slowJob(job batch.Job) batch.Job {
	work := c.job(job).Work
	job.Work = func(ctx context.Context, a batch.Attempt) error {
		if a.Command != "quick" {
			time.Sleep(time.Hour)
		}
		return work(ctx, a)
	}
	return job
}

// A running host takes up what another host adds, before it ends, and when it is idle while others work; it
// checks at most once a minute.
// Rule: add
func TestHostTakesUpWhatIsAdded(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		quick := map[string]string{}
		for _, name := range letters(20) {
			quick[name] = "quick"
		}
		list := c.slow(c.list(letters(12), quick))
		first := runningIn(inTime(t), prepare(t, v, list, batch.Options{Follow: c.slowJob}))
		require.NoError(t, (<-first).err)
		require.Equal(t, 1, v.Count("grown"))

		v.Hold("#jobs-13-13", grouptest.Alive("node7"))
		longer := c.slow(c.list(letters(13), quick))
		idle := runningIn(inTime(t), prepare(t, v, longer, batch.Options{Add: true, Follow: c.slowJob}))
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, v.Count("grown"), 11)
		other := runningIn(inTime(t), prepare(t, v, c.slow(c.list(letters(14), map[string]string{"n": "long"})), batch.Options{Add: true}))
		require.ErrorAs(t, (<-other).err, new(*batch.ManifestError), "its first jobs have other commands")
		longest := c.slow(c.list(letters(20), quick))
		alone := runningIn(inTime(t), prepare(t, v, longest, batch.Options{Add: true, Workers: 1}))
		time.Sleep(10 * time.Minute)
		require.Equal(t, 19, ran.names(), "one of the two has run them")
		v.Release("#jobs-13-13")
		one, two := <-idle, <-alone
		require.NoError(t, one.err)
		require.NoError(t, two.err)
		require.Equal(t, 20, one.report.Done)
		require.Equal(t, 20, one.report.Total)
		ran.requireOnce(t, 20)
	})
}

// replaces makes a busy host replace the list: it runs none of the jobs.
func replaces(t *testing.T, v *grouptest.ChunkVenue, list []batch.Job) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := prepare(t, v, list, batch.Options{Replace: true, Busy: func() string { return "it is busy" }}).Run(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A host that is too small for an added job continues with its own list, and waits for the results of
// others there.
// Rule: add
func TestHostThatIsTooSmall(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		v.Hold("#jobs-4-4", grouptest.Alive("node7"))
		works := runningIn(inTime(t), prepare(t, v, c.list(letters(4), nil), batch.Options{Follow: c.slowJob}))
		time.Sleep(time.Minute)
		big := batch.Options{Add: true, Workers: 9, Needs: []batch.Needs{{From: 5, CPUs: 9}}}
		adds := runningIn(inTime(t), prepare(t, v, c.list(letters(5), nil), big))
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, v.Count("read the manifest"), 3)
		v.Release("#jobs-4-4")
		end := <-works
		require.NoError(t, end.err)
		require.Equal(t, batch.Progress{Total: 4, Done: 4, Ran: end.report.Ran}, end.report.Progress)
		require.NoError(t, (<-adds).err)
		ran.requireOnce(t, 5)
	})
}

// A running host takes up what another host changes: it leaves a chunk whose record needs a newer list
// until it has nothing else to do.
// Rule: replace
func TestHostTakesUpAnotherList(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		old := c.slow(c.list(letters(12), map[string]string{"a": "bad", "l": "bad"}))
		works := runningIn(inTime(t), prepare(t, v, old, batch.Options{Follow: c.slowJob}))
		time.Sleep(3*time.Hour + time.Minute) // the first chunk is done
		list := c.slow(c.list(append(letters(11), "m"), map[string]string{"a": "quick", "k": "new"}))
		replaces(t, v, list)
		got := <-works
		require.NoError(t, got.err)
		require.Equal(t, batch.Progress{Total: 12, Done: 12, Ran: 13}, got.report.Progress)
		require.Zero(t, ran.of("l: bad"))
		require.Zero(t, ran.of("k: old"))
		for _, one := range []string{"a: bad", "a: quick", "k: new", "m: old"} {
			require.Equal(t, 1, ran.of(one), one)
		}
	})
}

// A host takes up no command that another user may have written, nor without Follow: it leaves added jobs,
// and ends with an error if its own list was replaced.
// Rule: add, replace
func TestHostThatTakesNothingUp(t *testing.T) {
	for what, opt := range map[string]func(v *grouptest.ChunkVenue, c commands) batch.Options{
		"another user may write": func(v *grouptest.ChunkVenue, c commands) batch.Options {
			v.Shared = true
			return batch.Options{Follow: c.slowJob}
		},
		"without Follow": func(*grouptest.ChunkVenue, commands) batch.Options { return batch.Options{} },
	} {
		t.Run(what, func(t *testing.T) {
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
				c := commands{ran}
				options := opt(v, c)
				adds := runningIn(inTime(t), prepare(t, v, c.slow(c.list(letters(4), nil)), options))
				time.Sleep(time.Minute)
				_, err := prepare(t, v, c.list(letters(5), map[string]string{"e": "quick"}), batch.Options{Add: true, Halt: batch.Halt{When: batch.HaltSoon, What: batch.HaltDone, Number: 1}}).Run(inTime(t))
				require.ErrorAs(t, err, new(*batch.HaltError))
				end := <-adds
				require.NoError(t, end.err)
				require.Equal(t, 4, end.report.Total)
			})
			inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
				c := commands{ran}
				works := runningIn(inTime(t), prepare(t, v, c.slow(c.list(letters(4), nil)), opt(v, c)))
				time.Sleep(time.Minute)
				replaces(t, v, c.list(letters(4), map[string]string{"d": "new"}))
				require.ErrorIs(t, (<-works).err, batch.ErrReplaced)
				require.Zero(t, ran.of("d: old"))
			})
		})
	}
}

// If an editor died before it appended the section that a record refers to, the list stays as it was, also
// for an editor that was only suspended.
// Rule: replace
func TestListWhoseEditorDied(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		list := c.list(letters(4), map[string]string{"a": "bad"})
		_, err := prepare(t, v, list, batch.Options{}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		sections, err := v.Sections(t.Context(), 1000)
		require.NoError(t, err)
		marked := chunkOf(1, 1)
		marked.Chunk.Revision = 2
		v.Commit(marked)
		require.NoError(t, v.DropProgressMap(t.Context()))
		report, err := prepare(t, v, list, batch.Options{}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, 1, report.Ran)
		require.Equal(t, 2, ran.of("a: bad"))
		grown, err := v.Continue(t.Context(), sections, []byte(source.Whole+"\n"))
		require.NoError(t, err)
		require.False(t, grown, "the editor comes too late")

		fixed := c.list(letters(4), map[string]string{"a": "new"})
		report, err = prepare(t, v, fixed, batch.Options{Replace: true}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 4, Done: 4, Before: 3, Ran: 1}, report.Progress)
		_, err = prepare(t, v, c.list(letters(6), map[string]string{"a": "new"}), batch.Options{Add: true}).Run(inTime(t))
		require.NoError(t, err)
	})
}

// A job is changed in the part to which it was given back. A host then begins the part with the list that
// its record refers to.
// Rule: replace, give-back
func TestPartOfAReplacedList(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		theirs := chunkOf(1, 4, source.ChunkJob{Number: 1, Name: "a", Attempt: 1})
		theirs.Chunk.Returned = []source.Range{{From: 2, To: 4}}
		theirs.Chunk.Count()
		v.Commit(theirs)
		works := runningIn(inTime(t), prepare(t, v, c.slow(c.list(letters(16), nil)), batch.Options{Follow: c.slowJob}))
		time.Sleep(time.Minute)
		list := c.slow(c.list(letters(16), map[string]string{"c": "new"}))
		replaces(t, v, list)
		end := <-works
		require.NoError(t, end.err)
		require.Equal(t, 16, end.report.Done)
		require.Equal(t, 1, ran.of("c: new"))
		require.Zero(t, ran.of("c: old"))
		r, err := v.Result(t.Context(), "#jobs-2-4")
		require.NoError(t, err)
		require.Equal(t, []int{2, 3}, []int{r.Chunk.Revision, r.Chunk.Done})
	})
}
