package lockgroup_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// wait waits at a barrier for at most an hour of the bubble's time.
func wait(t *testing.T, p source.Group, opt lockgroup.BarrierOptions) (lockgroup.Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	b, err := lockgroup.NewBarrier(p, opt)
	require.NoError(t, err)
	return b.Wait(ctx)
}

// inPlace runs a test with a place of its own, in a synctest bubble.
func inPlace(t *testing.T, test func(t *testing.T, p *grouptest.Place)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, grouptest.NewPlace()) })
}

// Rule: barrier
func TestBarrierOpensWhenNothingIsHeld(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("a", grouptest.Alive("node1"))
		p.Hold("b", grouptest.Alive("node2"))
		time.AfterFunc(time.Minute, func() { p.Release("a") })
		time.AfterFunc(10*time.Minute, func() { p.Release("b") })
		start := time.Now()
		report, err := wait(t, p, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, report.Unread, multilock.ErrUnsupported, "this place keeps no history")
		report.Unread = nil
		require.Equal(t, lockgroup.Report{}, report)
		require.WithinRange(t, time.Now(), start.Add(10*time.Minute), start.Add(10*time.Minute+multilock.DefaultPoll))
	})
}

// A poll is one request. Holders are inspected rarely.
// Rule: barrier, barrier-dead
func TestPollsOfABarrierAreCheap(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("a", grouptest.Alive("node1"))
		time.AfterFunc(10*time.Minute, func() { p.Release("a") })
		_, err := wait(t, p, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.Greater(t, p.Count("empty"), 600)
		require.LessOrEqual(t, p.Count("names"), 25)
		require.LessOrEqual(t, p.Count("look"), 25)
		require.LessOrEqual(t, p.Count("wake"), 25)
		require.Zero(t, p.Count("result")+p.Count("results")+p.Count("revision"))
	})
}

// Rule: barrier
func TestBarrierPassesAtOnceIfNothingWasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		_, err := wait(t, grouptest.NewPlace(), lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.Equal(t, start, time.Now())
	})
}

// A barrier that settles waits for jobs that are just being started.
// Rule: members
func TestBarrierSettles(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		start := time.Now()
		time.AfterFunc(4*time.Second, func() { p.Hold("a", grouptest.Alive("node1")) })
		time.AfterFunc(time.Minute, func() { p.Release("a") })
		_, err := wait(t, p, lockgroup.BarrierOptions{Settle: 5 * time.Second})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(start), time.Minute)
		require.LessOrEqual(t, time.Since(start), time.Minute+multilock.DefaultPoll)

		start = time.Now()
		_, err = wait(t, p, lockgroup.BarrierOptions{Settle: 5 * time.Second})
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(start).Truncate(time.Second))
	})
}

// A barrier waits for members even if none of their jobs has started, and other locks in the group do
// not matter.
// Rule: members
func TestBarrierForMembers(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Hold("other", grouptest.Alive("node9"))
		p.Commit(grouptest.Failed("other", true))
		for i, name := range []string{"a", "b", "c"} {
			time.AfterFunc(time.Duration(i+1)*time.Minute, func() { p.Commit(grouptest.Succeeded(name)) })
		}
		start := time.Now()
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a", "b", "c", "b"}})
		require.NoError(t, err)
		require.Equal(t, lockgroup.Report{Done: 3}, report)
		require.GreaterOrEqual(t, time.Since(start), 3*time.Minute)
		require.Zero(t, p.Count("empty"))
		require.LessOrEqual(t, p.Count("results"), 8, "they are listed when they changed, and once more")
		require.Equal(t, 3, p.Count("result"), "what is final is read once")
	})
}

// A change so soon after a listing that the timestamp stays the same is still found.
// Rule: members
func TestBarrierSeesAResultThatLeftNoStamp(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		time.AfterFunc(time.Minute, func() { p.Commit(grouptest.Succeeded("a")) })
		time.AfterFunc(time.Minute+multilock.DefaultPoll+time.Millisecond, func() {
			p.Commit(grouptest.Succeeded("b"))
			p.Mu.Lock()
			defer p.Mu.Unlock()
			p.Rev-- // within one tick of the server's clock
		})
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a", "b"}})
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
	})
}

// An expected number is reached when that many jobs are done and nothing is held any more.
// Rule: members
func TestBarrierForANumber(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		time.AfterFunc(time.Minute, func() { p.Commit(grouptest.Succeeded("a")) })
		time.AfterFunc(2*time.Minute, func() { p.Commit(grouptest.Succeeded("b")); p.Hold("late", grouptest.Alive("node1")) })
		time.AfterFunc(5*time.Minute, func() { p.Release("late") })
		start := time.Now()
		report, err := wait(t, p, lockgroup.BarrierOptions{Expect: 2})
		require.NoError(t, err)
		require.Equal(t, 2, report.Done)
		require.GreaterOrEqual(t, time.Since(start), 5*time.Minute)
	})
}

// A failure may be final or not: the barrier waits for a job that will be retried.
// Rule: members
func TestBarrierNamesTheFailed(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Commit(grouptest.Failed("a", false))
		p.Commit(grouptest.Failed("b", true))
		p.Commit(multilock.Result{Name: "c", Foreign: "bytes that nobody can read"})
		time.AfterFunc(time.Minute, func() { p.Commit(grouptest.Succeeded("a")) })
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a", "b", "c"}})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, 1, report.Done)
		require.Len(t, report.Failed, 2)
		require.Equal(t, grouptest.Failed("b", true), report.Failed[0])
		require.Equal(t, "bytes that nobody can read", report.Failed[1].Foreign)
	})
}

// At the deadline the report names the missing jobs and the holders, as of that time and not of the last
// rare inspection.
// Rule: none (messages)
func TestBarrierSaysWhatItWaitedFor(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Commit(grouptest.Succeeded("a"))
		time.AfterFunc(59*time.Minute+59*time.Second, func() { p.Hold("b", grouptest.Alive("node2")) })
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a", "b", "c"}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, []string{"b", "c"}, report.Missing)
		require.Len(t, report.Held, 1)
		require.Equal(t, "node2", report.Held[0].Observation.Record.Holder.Host)
	})
}

// Rule: none (messages)
func TestBarrierCountsWhatIsShort(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Commit(grouptest.Succeeded("a"))
		report, err := wait(t, p, lockgroup.BarrierOptions{Expect: 3})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2, report.Short)
	})
}

// A source that hangs does not keep a barrier from timing out.
// Rule: none (time limits)
func TestBarrierEndsThoughTheSourceHangs(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		never := make(chan struct{})
		p.Hang = never
		defer close(never)
		stop := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(stop) })
		b, err := lockgroup.NewBarrier(p, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		_, err = b.Wait(ctx)
		require.ErrorIs(t, err, stop)
	})
}

// A barrier that could inspect nothing reports that, with the reason.
// Rule: barrier
func TestBarrierThatNeverSawAnything(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		never := make(chan struct{})
		p.Hang = never
		defer close(never)
		report, err := wait(t, p, lockgroup.BarrierOptions{Members: []string{"a"}})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "could not be looked at: no answer within 2s")
		require.Equal(t, []string{"a"}, report.Missing)
	})
}

// Rule: barrier
func TestBarrierReportsWhatTheSourceSays(t *testing.T) {
	members := []string{"a"}
	for call, members := range map[string][]string{"empty": nil, "names": nil, "revision": members, "results": members, "result": members} {
		t.Run(call, func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *grouptest.Place) {
				broken := errors.New("input/output error")
				if members == nil {
					p.Hold("a", grouptest.Alive("node1"))
				}
				p.Commit(grouptest.Succeeded("a"))
				p.Fail(call, broken)
				_, err := wait(t, p, lockgroup.BarrierOptions{Members: members})
				require.ErrorIs(t, err, broken)
			})
		})
	}
}

// Rule: members
func TestProgressOfABarrier(t *testing.T) {
	inPlace(t, func(t *testing.T, p *grouptest.Place) {
		p.Commit(grouptest.Succeeded("a"))
		p.Commit(grouptest.Failed("b", true))
		p.Hold("c", grouptest.Alive("node3"))
		b, err := lockgroup.NewBarrier(p, lockgroup.BarrierOptions{Members: []string{"a", "b", "c"}})
		require.NoError(t, err)
		require.Equal(t, lockgroup.Progress{Total: 3}, b.Progress())
		ended := make(chan error, 1)
		go func() {
			_, err := b.Wait(t.Context())
			ended <- err
		}()
		time.Sleep(time.Minute)
		progress := b.Progress()
		require.Len(t, progress.Held, 1)
		require.Equal(t, "c", progress.Held[0].Name)
		progress.Held = nil
		require.Equal(t, lockgroup.Progress{Total: 3, Done: 1, Failed: 1}, progress)
		p.Commit(grouptest.Succeeded("c"))
		require.ErrorIs(t, <-ended, lockgroup.ErrNotDone)
		require.Equal(t, 2, b.Progress().Done)
		require.Empty(t, b.Progress().Held, "what is done holds nobody up")
	})
}

// Rule: none (options)
func TestBarrierOptionsThatContradict(t *testing.T) {
	for i, opt := range []lockgroup.BarrierOptions{
		{Members: []string{"a"}, Expect: 1}, {Expect: -1}, {Poll: -1}, {Settle: -1}, {Inspect: -1}, {Since: -1},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			_, err := lockgroup.NewBarrier(grouptest.NewPlace(), opt)
			require.ErrorIs(t, err, multilock.ErrInvalid)
		})
	}
}

// onlyAGroup keeps no results.
type onlyAGroup struct{ source.Group }

// Rule: none (options)
func TestBarrierNeedsALedgerForMembers(t *testing.T) {
	_, err := lockgroup.NewBarrier(onlyAGroup{grouptest.NewPlace()}, lockgroup.BarrierOptions{Expect: 1})
	require.ErrorIs(t, err, multilock.ErrUnsupported)
}
