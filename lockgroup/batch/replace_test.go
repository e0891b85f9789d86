package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock/source"
)

// commands counts the commands that ran, as NAME: COMMAND.
type commands struct{ *runs }

// list returns jobs with these names, and the command "old", or that in other. "bad" fails.
func (c commands) list(names []string, other map[string]string) (list []batch.Job) {
	for _, name := range names {
		job := batch.Job{Name: name, Command: "old"}
		if command := other[name]; command != "" {
			job.Command = command
		}
		list = append(list, c.job(job))
	}
	return list
}

func (c commands) job(job batch.Job) batch.Job {
	job.Work = func(_ context.Context, a batch.Attempt) error {
		c.add(a.Name + ": " + a.Command)
		if a.Command == "bad" {
			return errWork
		}
		return nil
	}
	return job
}

func letters(n int) (names []string) {
	for i := range n {
		names = append(names, string(rune('a'+i)))
	}
	return names
}

// Three failed jobs of a list are corrected, one is removed and two are added. Finished jobs remain done,
// the corrected jobs run again, and afterwards only a host with the new list can join.
// Rule: replace
func TestReplacedList(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		names := letters(20)
		old := c.list(names, map[string]string{"b": "bad", "k": "bad", "t": "bad", "f": "bad"})
		_, err := prepare(t, v, old, batch.Options{Workers: 3}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)

		fixed := map[string]string{"b": "new", "k": "new", "t": "new"}
		added := slices.Concat([]string{"x"}, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "f" }), []string{"y"})
		list := c.list(added, fixed)
		_, err = prepare(t, v, list, batch.Options{}).Run(inTime(t))
		require.ErrorAs(t, err, new(*batch.ManifestError))
		foreseen, err := prepare(t, v, list, batch.Options{Replace: true}).Foresee(inTime(t))
		require.NoError(t, err)
		var changes batch.Changes
		opt := batch.Options{Replace: true, Replaced: func(c batch.Changes) { changes = c }}
		report, err := prepare(t, v, list, opt).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Changes{Changed: []string{"b", "k", "t"}, Added: []string{"x", "y"}, Removed: []string{"f"}, Unchanged: 16}, changes)
		require.Equal(t, foreseen, changes)
		require.Equal(t, batch.Progress{Total: 21, Done: 21, Before: 16, Ran: 5}, report.Progress)
		for _, one := range []string{"a: old", "b: bad", "b: new", "k: new", "t: new", "f: bad", "x: old", "y: old"} {
			require.Equal(t, 1, ran.of(one), one)
		}
		require.Equal(t, 25, ran.names())

		var differs *batch.ManifestError
		_, err = prepare(t, v, old, batch.Options{}).Run(inTime(t))
		require.ErrorAs(t, err, &differs)
		require.Equal(t, batch.ManifestError{Line: 2, Ours: "b\tbad", Theirs: "b\tnew"}, *differs)
		for _, opt := range []batch.Options{{}, {Replace: true}, {Add: true}} {
			report, err = prepare(t, v, list, opt).Run(inTime(t))
			require.NoError(t, err)
			require.Equal(t, batch.Progress{Total: 21, Done: 21, Before: 21}, report.Progress)
		}
		list = append(list, c.list([]string{"z"}, nil)...)
		report, err = prepare(t, v, list, batch.Options{Add: true}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 22, Done: 22, Before: 21, Ran: 1}, report.Progress)
		seen := map[int]string{}
		require.NoError(t, joblist.Each(t.Context(), v, func(j joblist.Job) bool { seen[j.Number] = j.Name(); return true }))
		require.Len(t, seen, 22)
		require.Equal(t, []string{"", "t", "x", "y", "z"}, []string{seen[6], seen[20], seen[21], seen[22], seen[23]})
	})
}

// The command of a job that is done cannot change, unless the job is to run again.
// Rule: replace
func TestReplaceWhatIsDone(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		_, err := prepare(t, v, c.list(letters(12), nil), batch.Options{}).Run(inTime(t))
		require.NoError(t, err)
		list := c.list(letters(12), map[string]string{"a": "new", "l": "new"})
		commits := v.Count("commit")
		var done *batch.DoneError
		_, err = prepare(t, v, list, batch.Options{Replace: true, Redo: []string{"a"}}).Run(inTime(t))
		require.ErrorAs(t, err, &done)
		require.Equal(t, []string{"l"}, done.Names)
		require.Equal(t, commits, v.Count("commit"), "nothing was changed")
		report, err := prepare(t, v, list, batch.Options{Replace: true, Redo: []string{"a", "l", "c"}}).Run(inTime(t))
		require.NoError(t, err)
		require.Equal(t, batch.Progress{Total: 12, Done: 12, Before: 9, Ran: 3}, report.Progress)
		for _, one := range []string{"a: new", "l: new"} {
			require.Equal(t, 1, ran.of(one))
		}
		require.Equal(t, 2, ran.of("c: old"))
		_, err = prepare(t, v, list, batch.Options{Replace: true, Redo: []string{"c"}}).Run(inTime(t))
		require.NoError(t, err, "the list stays as it is")
		require.Equal(t, 3, ran.of("c: old"))
		_, err = batch.New(v, list, batch.Options{Replace: true, Redo: []string{"z"}})
		require.ErrorIs(t, err, source.ErrInvalid)
	})
}

// Existing barriers keep their places; new ones may only follow at the end. Needs may change.
// Rule: replace
func TestReplaceRules(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		bad := map[string]string{"e": "bad"}
		_, err := prepare(t, v, c.list(letters(9), bad), batch.Options{Barriers: []int{6}, Needs: []batch.Needs{{From: 3, Memory: 5}}}).Run(inTime(t))
		require.ErrorAs(t, err, new(*batch.BarrierError))
		replace := func(list []batch.Job, barriers ...int) error {
			_, err := prepare(t, v, list, batch.Options{Replace: true, Barriers: barriers, Workers: 2, Needs: []batch.Needs{{From: 3, Memory: 5}, {From: 5, CPUs: 2}}}).Run(inTime(t))
			return err
		}
		require.ErrorContains(t, replace(c.list(letters(9), bad), 5), "stands between other barriers")
		require.ErrorContains(t, replace(c.list(append([]string{"x"}, letters(9)...), bad), 7), "above a barrier")
		shell := prepare(t, v, c.list(letters(9), nil), batch.Options{Replace: true, Shell: "bash"})
		_, err = shell.Run(inTime(t))
		require.ErrorAs(t, err, new(*batch.ManifestError))
		require.NoError(t, replace(c.list(append(letters(9), "x"), nil), 6, 9))
		require.Equal(t, 1, ran.of("e: bad"))
		require.Equal(t, 1, ran.of("e: old"))
		require.Equal(t, 1, ran.of("x: old"))
		require.NoError(t, replace(c.list(append(letters(9), "x"), nil), 6, 9))
		_, err = prepare(t, v, c.list(append(letters(9), "x"), nil), batch.Options{Barriers: []int{6, 9}}).Run(inTime(t))
		require.ErrorContains(t, err, "cpus=")
		require.Equal(t, 11, ran.names())
	})
}

// A job that another host may be running cannot be changed.
// Rule: replace
func TestReplaceWhatRuns(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		_, err := prepare(t, v, c.list(letters(12), map[string]string{"a": "bad"}), batch.Options{}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		v.Hold("#jobs-1-3", grouptest.Alive("node7"))
		var busy *batch.BusyError
		fixed := c.list(letters(12), map[string]string{"a": "new"})
		_, err = prepare(t, v, fixed, batch.Options{Replace: true}).Run(inTime(t))
		require.ErrorAs(t, err, &busy)
		require.ErrorContains(t, err, "the lock of jobs 1 to 3 is held by node7")
		require.Equal(t, "a", busy.Name)
		require.False(t, v.IsHeld("#jobs-4-5"))
		v.Release("#jobs-1-3")
		_, err = prepare(t, v, fixed, batch.Options{Replace: true}).Run(inTime(t))
		require.NoError(t, err)
	})
}

// With Wait a host that has claimed a job which it has not begun gives it back, and goes on with its other
// jobs; it uses the new list in the end.
// Rule: replace, give-back
func TestReplaceWhatWasClaimed(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		c := commands{ran}
		works := runningIn(inTime(t), prepare(t, v, c.slow(c.list(letters(16), nil)), batch.Options{Follow: c.slowJob}))
		time.Sleep(time.Minute)
		require.True(t, v.IsHeld("#jobs-1-4"))
		list := c.slow(c.list(letters(16), map[string]string{"b": "new"}))
		_, err := prepare(t, v, list, batch.Options{Replace: true}).Run(inTime(t))
		require.ErrorAs(t, err, new(*batch.BusyError))
		running := c.slow(c.list(letters(16), map[string]string{"a": "new"}))
		_, err = prepare(t, v, running, batch.Options{Replace: true, Wait: 10 * time.Minute}).Run(inTime(t))
		require.ErrorAs(t, err, new(*batch.BusyError), "it runs")
		require.True(t, v.IsHeld("#jobs-1-4"))
		opt := batch.Options{Replace: true, Wait: 10 * time.Minute, Busy: func() string { return "it is busy" }}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
		defer cancel()
		_, err = prepare(t, v, list, opt).Run(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded, "the list is replaced")
		end := <-works
		require.NoError(t, end.err)
		require.Equal(t, 16, end.report.Ran)
		require.Equal(t, 1, ran.of("b: new"))
		ran.requireOnce(t, 16)
	})
}

// Hosts that replace a list at the same time all succeed if they have the same list; of two different lists
// one is rejected.
// Rule: replace
func TestTwoReplaceAtOnce(t *testing.T) {
	inChunks(t, func(t *testing.T, v *grouptest.ChunkVenue, ran *runs) {
		v.Latency = time.Millisecond
		c := commands{ran}
		_, err := prepare(t, v, c.list(letters(12), map[string]string{"a": "bad", "l": "bad"}), batch.Options{}).Run(inTime(t))
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		run := func(lists ...[]batch.Job) (errs []error) {
			var hosts sync.WaitGroup
			all := make(chan error, len(lists))
			for _, list := range lists {
				b := prepare(t, v, list, batch.Options{Replace: true})
				hosts.Go(func() { _, err := b.Run(inTime(t)); all <- err })
			}
			hosts.Wait()
			for range lists {
				errs = append(errs, <-all)
			}
			return errs
		}
		one := map[string]string{"a": "one", "l": "bad"}
		errs := run(c.list(letters(12), one), c.list(letters(12), map[string]string{"a": "bad", "l": "two"}))
		require.True(t, slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, batch.ErrReplaced) }), "%v", errs)
		require.Equal(t, 1, ran.of("a: one")+ran.of("l: two"))
		both := c.list(letters(12), map[string]string{"a": "three", "l": "three"})
		_, err = prepare(t, v, both, batch.Options{Replace: true}).Run(inTime(t))
		require.ErrorAs(t, err, new(*batch.DoneError))
		last := c.list(append(letters(12), "m"), one)
		if ran.of("l: two") == 1 {
			last = c.list(append(letters(12), "m"), map[string]string{"l": "two", "a": "fine"})
		}
		for _, err := range run(last, last, last) {
			if err != nil {
				require.ErrorIs(t, err, lockgroup.ErrNotDone)
			}
		}
		require.Equal(t, 1, ran.of("m: old"))
	})
}
