package runner

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// noting is a source with one lock that records the marks of its holder.
type noting struct {
	source.Source
	source.Contender
	source.Lease

	notes []string // when, and which jobs
	works []process.Work
	start time.Time
	hang  chan struct{} // each mark waits until it is closed; may be nil
}

func (n *noting) Contend(context.Context, string, source.Claim, source.StalePolicy) (source.Contender, error) {
	return n, nil
}

func (n *noting) Since() boottime.Instant { return boottime.Now() }

func (n *noting) Try(context.Context) (source.Lease, error) { return n, nil }
func (n *noting) Close() error                              { return nil }
func (n *noting) Record() source.Record                     { return source.Record{Name: "x"} }
func (n *noting) Release(context.Context) error             { return nil }

func (n *noting) MarkJob(_ context.Context, jobs ...process.Group) error {
	note := time.Since(n.start).String()
	for _, job := range jobs {
		note += fmt.Sprint(" ", job.PGID)
		n.works = append(n.works, job.Work)
	}
	n.notes = append(n.notes, note)
	if n.hang != nil {
		<-n.hang
	}
	return nil
}

// marked runs a test with the marks of a held lock.
func marked(t *testing.T, n *noting, test func(start func(pgid int) stopper)) {
	synctest.Test(t, func(t *testing.T) {
		lock, err := multilock.TryAcquire(t.Context(), n, "x", multilock.Detached{Options: multilock.Options{TTL: time.Hour}})
		require.NoError(t, err)
		m := NewMarks(lock, func(string, ...any) { t.Error("it has nothing to say") })
		n.start = time.Now()
		test(func(pgid int) stopper {
			return m.add(func() []process.Group { return []process.Group{{PGID: pgid}} }, process.Work{Job: pgid})
		})
		require.NoError(t, lock.Release(context.Background()))
		time.Sleep(time.Minute)
	})
}

// pass advances the time, so that nothing else is due before its end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestShortJobsAreNotNoted(t *testing.T) {
	n := &noting{}
	marked(t, n, func(start func(int) stopper) {
		for pgid := range 100 {
			job := start(pgid)
			pass(markPace - time.Millisecond)
			job.stop()
		}
	})
	require.Empty(t, n.notes)
}

// Jobs in sequence are marked together, at most once a second. Ended jobs are removed with the next mark, and
// never cause one.
func TestJobsOfOneLockAreNotedTogether(t *testing.T) {
	n := &noting{}
	marked(t, n, func(start func(int) stopper) {
		first := start(1)
		pass(400 * time.Millisecond)
		second := start(2)
		pass(100 * time.Millisecond)
		third, short := start(3), start(4)
		pass(900 * time.Millisecond)
		short.stop()
		pass(5 * time.Second)
		first.stop()
		pass(time.Minute)
		fifth := start(5)
		pass(time.Minute)
		for _, job := range []stopper{second, third, fifth} {
			job.stop()
		}
		pass(time.Minute)
	})
	require.Equal(t, []string{"1s 1", "2s 1 2 3", "1m7.4s 2 3 5"}, n.notes)
	require.Equal(t, []process.Work{{Job: 2, After: 0.4}, {Job: 3, After: 0.5}, {Job: 5, After: 66.4}}, n.works[4:], "what they work on, and since when")
}

// A job that ended before its groups were read is not marked.
func TestJobsThatHaveJustEndedAreNotNoted(t *testing.T) {
	n := &noting{}
	marked(t, n, func(start func(int) stopper) {
		start(0)
		pass(time.Minute)
		start(1)
		pass(time.Minute)
	})
	require.Equal(t, []string{"1m1s 1"}, n.notes)
}

// A mark that the server does not answer blocks no job, and is repeated.
func TestJobsEndWhileTheirNoteHangs(t *testing.T) {
	n := &noting{}
	marked(t, n, func(start func(int) stopper) {
		n.hang = make(chan struct{})
		first := start(1)
		pass(time.Minute)
		second := start(2)
		first.stop()
		pass(time.Minute)
		close(n.hang)
		pass(time.Minute)
		second.stop()
	})
	require.Equal(t, []string{"1s 1", "2m1s 2"}, n.notes)
}

// The processes of a job may move to other groups while it runs: each heartbeat looks for them, and records
// new ones.
func TestGroupsThatComeLater(t *testing.T) {
	n := &noting{}
	synctest.Test(t, func(t *testing.T) {
		lock, err := multilock.TryAcquire(t.Context(), n, "x", multilock.Detached{Options: multilock.Options{TTL: time.Hour}})
		require.NoError(t, err)
		m := NewMarks(lock, func(string, ...any) { t.Error("it has nothing to say") })
		n.start = time.Now()
		var groups atomic.Pointer[[]process.Group]
		groups.Store(&[]process.Group{{PGID: 1}})
		job := m.add(func() []process.Group { return *groups.Load() }, process.Work{})
		pass(5 * time.Second)
		groups.Store(&[]process.Group{{PGID: 1}, {PGID: 7}})
		pass(5 * time.Second)
		groups.Store(&[]process.Group{{PGID: 7}})
		pass(5 * time.Second)
		job.stop()
		require.NoError(t, lock.Release(context.Background()))
		time.Sleep(time.Hour)
	})
	require.Len(t, n.notes, 2, "what is over may stay noted")
	require.Contains(t, n.notes[1], " 1 7")
}
