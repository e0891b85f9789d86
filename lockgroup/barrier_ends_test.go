package lockgroup_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/internal/grouptest"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

type placeWithHistory struct {
	*grouptest.Place
	events []source.Event
}

func (p *placeWithHistory) Record(context.Context, []source.Event) error {
	return multilock.ErrUnsupported
}

func (p *placeWithHistory) History(context.Context, time.Time) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) { yield(source.Event{}, multilock.ErrUnsupported) }
}

func (p *placeWithHistory) Follow(since time.Time) source.Follower {
	return &placeFollower{p: p, since: since}
}

type placeFollower struct {
	p     *placeWithHistory
	since time.Time
	read  int
}

func (f *placeFollower) Next(context.Context) ([]source.Event, error) {
	err := f.p.Enter("history")
	f.p.Mu.Lock()
	defer f.p.Mu.Unlock()
	var found []source.Event
	for _, e := range f.p.events[f.read:] {
		if !e.Time.Before(f.since) {
			found = append(found, e)
		}
	}
	f.read = len(f.p.events)
	return found, err
}

func (f *placeFollower) Close() error { return nil }

func (p *placeWithHistory) write(e source.Event) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.events = append(p.events, e)
}

// happened returns an event of an acquisition, some minutes before now.
func happened(minutes int, what source.EventKind, token string) source.Event {
	return source.Event{
		Time: time.Now().Add(-time.Duration(minutes) * time.Minute), What: what, Name: "a", Token: token, By: process.Identity{Host: "node1", PID: 7},
	}
}

func exited(e source.Event, code int) source.Event { e.Exit = &code; return e }

func fenced(e source.Event, fence uint64) source.Event { e.Fence = fence; return e }

// The barrier waits for a job that acquires its lock while the history is read, if no lock was held until
// then.
// Rule: barrier-ends
func TestBarrierWaitsForAJobThatBeginsMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &beginning{placeWithHistory{Place: grouptest.NewPlace()}}
		_, err := wait(t, p, lockgroup.BarrierOptions{Settle: time.Second})
		require.NoError(t, err)
		require.False(t, p.IsHeld("a"))
	})
}

// beginning is a place where a job begins during the first read of the history.
type beginning struct{ placeWithHistory }

func (b *beginning) Follow(since time.Time) source.Follower {
	if b.Count("history") == 0 {
		b.Hold("a", grouptest.Alive("node1"))
		time.AfterFunc(time.Minute, func() { b.Release("a") })
	}
	return b.placeWithHistory.Follow(since)
}

// The last run of a name counts, whatever its host's clock shows and whichever host reports first.
// Rule: barrier-ends
func TestBarrierAsksHowTheLastRunEnded(t *testing.T) {
	signalled := func(e source.Event) source.Event { e.Signal = "killed"; return exited(e, 137) }
	named := func(e source.Event, name string) source.Event { e.Name = name; return e }
	one := func(e ...source.Event) []source.Event { return e }
	for name, c := range map[string]struct {
		events func() []source.Event
		failed int
		died   int
	}{
		"nothing": {func() []source.Event { return nil }, 0, 0},
		"success": {func() []source.Event {
			return one(happened(9, "acquired", "1"), exited(happened(8, "released", "1"), 0))
		}, 0, 0},
		"failure": {func() []source.Event {
			return one(happened(9, "acquired", "1"), exited(happened(8, "released", "1"), 3))
		}, 1, 0},
		"signal": {func() []source.Event { return one(signalled(happened(8, "released", "1"))) }, 1, 0},
		"script": {func() []source.Event { return one(happened(9, "acquired", "1"), happened(8, "released", "1")) }, 0, 0},
		"script whose lock somebody broke faster than it was given back": {func() []source.Event {
			return one(happened(9, "acquired", "1"), happened(8, "broke", "1"), happened(8, "released", "1"))
		}, 0, 0},
		"lost": {func() []source.Event {
			return one(happened(9, "acquired", "1"), exited(happened(8, "lost", "1"), 0))
		}, 1, 0},
		"broken":           {func() []source.Event { return one(happened(9, "acquired", "1"), happened(8, "broke", "1")) }, 0, 1},
		"broken, long ago": {func() []source.Event { return one(happened(25*60, "broke", "1")) }, 0, 0},
		"broken, and what its holder says later": {func() []source.Event {
			return one(exited(happened(7, "released", "1"), 0), happened(8, "broke", "1"))
		}, 0, 1},
		"recorded, and then broken": {func() []source.Event {
			return one(exited(happened(9, "committed", "1"), 0), happened(8, "broke", "1"))
		}, 0, 0},
		"recorded, and then lost": {func() []source.Event {
			return one(exited(happened(9, "committed", "1"), 0), exited(happened(8, "lost", "1"), 0))
		}, 0, 0},
		"a second attempt under the same lock": {func() []source.Event {
			return one(exited(happened(9, "committed", "1"), 3), exited(happened(8, "committed", "1"), 0), exited(happened(7, "released", "1"), 0))
		}, 0, 0},
		"run again": {func() []source.Event {
			return one(exited(happened(5, "released", "2"), 0), exited(happened(8, "released", "1"), 3))
		}, 0, 0},
		"failed again": {func() []source.Event {
			return one(exited(happened(8, "released", "1"), 0), exited(happened(5, "released", "2"), 3))
		}, 1, 0},
		"taken over": {func() []source.Event {
			return one(happened(8, "broke", "1"), exited(happened(5, "released", "2"), 0))
		}, 0, 0},
		"taken over, by a clock that is behind": {func() []source.Event {
			return one(fenced(happened(9, "acquired", "1"), 4), happened(8, "broke", "1"), fenced(exited(happened(60, "released", "2"), 0), 5))
		}, 0, 0},
		"failed, by a clock that is behind": {func() []source.Event {
			return one(fenced(exited(happened(8, "released", "1"), 0), 4), fenced(exited(happened(60, "released", "2"), 3), 5))
		}, 1, 0},
		"refused and forgotten": {func() []source.Event {
			return one(exited(happened(9, "released", "1"), 0), happened(8, "refused", "2"), happened(7, "forgot", "3"))
		}, 0, 0},
		"forgotten is not done": {func() []source.Event {
			return one(exited(happened(9, "committed", "1"), 3), happened(7, "forgot", "3"))
		}, 1, 0},
		"several names": {func() []source.Event {
			return one(exited(happened(9, "released", "1"), 3), named(exited(happened(5, "released", "2"), 0), "b"), named(happened(4, "broke", "3"), "c"))
		}, 1, 1},
		"no end": {func() []source.Event { return one(happened(9, "acquired", "1")) }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &placeWithHistory{Place: grouptest.NewPlace(), events: c.events()}
				for range 2 { // a later barrier reports the same
					report, err := wait(t, &placeWithHistory{Place: grouptest.NewPlace(), events: p.events}, lockgroup.BarrierOptions{})
					require.Len(t, report.Failed, c.failed)
					require.Len(t, report.Crashed, c.died)
					require.NoError(t, report.Unread)
					if c.failed+c.died == 0 {
						require.NoError(t, err)
					} else {
						require.ErrorIs(t, err, lockgroup.ErrNotDone)
					}
				}
			})
		})
	}
}

// A run releases its lock before it records its end: the barrier waits for that.
// Rule: barrier-ends
func TestBarrierWaitsForAnEndThatIsBeingWritten(t *testing.T) {
	for code := range 2 {
		synctest.Test(t, func(t *testing.T) {
			p := &placeWithHistory{Place: grouptest.NewPlace()}
			p.Hold("a", grouptest.Alive("node1"))
			p.write(happened(0, "acquired", "token of node1"))
			time.AfterFunc(time.Minute, func() { p.Release("a") })
			time.AfterFunc(time.Minute+3*time.Second, func() { p.write(exited(happened(0, "released", "token of node1"), code)) })
			_, err := wait(t, p, lockgroup.BarrierOptions{})
			if code == 0 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, lockgroup.ErrNotDone)
			}
		})
	}
}

// The barrier does not wait for a run that acquired its lock after the barrier opened.
// Rule: barrier-ends
func TestBarrierLeavesOutWhoCameLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &placeWithHistory{Place: grouptest.NewPlace()}
		p.write(exited(happened(5, "released", "1"), 0))
		p.write(happened(5, "acquired", "token of node1"))
		opened := &late{placeWithHistory: p}
		start := time.Now()
		_, err := wait(t, opened, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.Less(t, time.Since(start), time.Second)
	})
}

// late is a place where a lock is acquired just after it was empty.
type late struct{ *placeWithHistory }

func (l *late) Empty(ctx context.Context) (bool, error) {
	empty, err := l.placeWithHistory.Empty(ctx)
	l.Hold("a", grouptest.Alive("node1"))
	return empty, err
}

// Unreadable history is always reported.
// Rule: barrier-ends, history
func TestBarrierSaysThatTheHistoryCannotBeRead(t *testing.T) {
	broken := errors.New("permission denied")
	synctest.Test(t, func(t *testing.T) {
		p := &placeWithHistory{Place: grouptest.NewPlace()}
		p.Fail("history", broken)
		report, err := wait(t, p.Place, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, report.Unread, multilock.ErrUnsupported)
		report, err = wait(t, p, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, report.Unread, broken)
		p.Hold("a", grouptest.Alive("node1"))
		time.AfterFunc(time.Minute, func() { p.Release("a") })
		_, err = wait(t, p, lockgroup.BarrierOptions{})
		require.ErrorIs(t, err, broken, "somebody was seen, and how that ended is not known")
	})
}

// A journal is read from --since on, as far as possible and in parts.
// Rule: barrier-ends
func TestBarrierFollowsAJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := grouptest.NewVenue()
		require.NoError(t, v.Record(t.Context(), []source.Event{exited(happened(9, "released", "1"), 3)}))
		report, err := wait(t, v, lockgroup.BarrierOptions{})
		require.ErrorIs(t, err, lockgroup.ErrNotDone)
		require.Equal(t, "a", report.Failed[0].Name)
		require.Equal(t, 3, report.Failed[0].Exit)
		require.Equal(t, "node1", report.Failed[0].By.Host)
	})
}

// A history that does not answer is named at the deadline, and the barrier has not opened.
// Rule: barrier-ends
func TestBarrierWhoseHistoryHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := make(chan struct{})
		defer close(never)
		_, err := wait(t, silentHistory{grouptest.NewVenue(), never}, lockgroup.BarrierOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "how the runs of the lock group ended could not be read: no answer within 2s")
	})
}

type silentHistory struct {
	*grouptest.Venue
	never chan struct{}
}

func (s silentHistory) Follow(time.Time) source.Follower { return s }

func (s silentHistory) Next(context.Context) ([]source.Event, error) {
	<-s.never
	return nil, nil
}

func (s silentHistory) Close() error { return nil }

// A barrier whose time is over does not leave behind the directory with which it asks whether the group exists.
// Rule: barrier-ends
func TestBarrierFinishesAskingWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowEmpty{Place: grouptest.NewPlace()}
		slow.Hold("a", grouptest.Alive("node1"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		barrier, err := lockgroup.NewBarrier(slow, lockgroup.BarrierOptions{})
		require.NoError(t, err)
		_, err = barrier.Wait(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, slow.begun, slow.finished)
		require.Positive(t, slow.finished)
	})
}

// slowEmpty is a place where Empty creates something, and removes it after a while.
type slowEmpty struct {
	*grouptest.Place
	begun, finished int
}

func (s *slowEmpty) Empty(ctx context.Context) (bool, error) {
	s.begun++
	time.Sleep([]time.Duration{700 * time.Millisecond, 1200 * time.Millisecond, 0}[min(s.begun, 3)-1])
	empty, err := s.Place.Empty(ctx)
	s.finished++
	return empty, err
}

// A run whose time is over while it reads the server's clock does not leave behind the directory with which it does so.
// Rule: none (time limits)
func TestPlanFinishesReadingTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		now, err := lockgroup.Plan{Every: lockgroup.EverySpan(time.Hour)}.Now(ctx, slowClock{grouptest.NewPlace()})
		require.NoError(t, err)
		require.Equal(t, start.Add(1500*time.Millisecond), now)
	})
}

// slowClock is a place whose clock is slow to answer.
type slowClock struct{ *grouptest.Place }

func (slowClock) Now(context.Context) (time.Time, error) {
	time.Sleep(1500 * time.Millisecond)
	return time.Now(), nil
}
