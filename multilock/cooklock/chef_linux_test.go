package cooklock_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/multilock/go/multilock/source"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cooklock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/locktest"
)

// cook takes the lock again and again, and works under it for a moment.
func (p part) cook(out io.Writer) error {
	files, err := fslock.Open(fslock.Options{Base: p.Base})
	if err != nil {
		return err
	}
	src, err := cooklock.New(cooklock.Options{Ledger: files, Period: p.Period})
	if err != nil {
		return err
	}
	recorder := locktest.NewRecorder(out, fmt.Sprintf("%s pid %d", p.Who, os.Getpid()))
	for {
		err := cookOnce(src, recorder)
		if err != nil && !errors.Is(err, source.ErrLost) && !errors.Is(err, source.ErrUnsure) {
			return err
		}
	}
}

func cookOnce(src *cooklock.Source, recorder *locktest.Recorder) error {
	lock, err := multilock.Acquire(context.Background(), src, "nightly", multilock.Options{Poll: src.Period() / 20})
	if err != nil {
		return err
	}
	held := locktest.Event{Name: "nightly", Token: lock.Record().Token}
	acquired, fenced, releasing := held, held, held
	acquired.Kind, acquired.Until = locktest.Acquired, locktest.Now()+lock.Remaining()
	fenced.Kind, fenced.Start, releasing.Kind = locktest.Fenced, locktest.Now(), locktest.Releasing
	err = recorder.Record(acquired)
	if number, drawing := lock.Fence(context.Background()); drawing == nil {
		fenced.Fence = number
		err = errors.Join(err, recorder.Record(fenced))
	}
	return errors.Join(err, recorder.Record(releasing), lock.Release(context.Background()))
}

// Over many periods, with processes that are stopped and killed at random,
// there is never more than one at work, and never more than one in a period.
func TestManyPeriods(t *testing.T) {
	const length, periods = 400 * time.Millisecond, 20
	base := quick(t)
	var all []*child
	var events []locktest.Event
	for len(acquisitions(events)) < periods {
		all = append(all, disturb(t, 10, func(n int) *child {
			return start(t, "chef", part{Base: base, Who: fmt.Sprint("chef ", len(all), n), Period: length})
		})...)
		events = nil
		for _, c := range all {
			events = append(events, c.cooking(t)...)
		}
	}
	require.NoError(t, locktest.Check(events))
	times := acquisitions(events)
	first, last := times[0], times[0]
	for _, at := range times {
		first, last = min(first, at), max(last, at)
	}
	// The first may have been told late that it has the lock, by as much as it lasts.
	require.GreaterOrEqual(t, last-first, time.Duration(len(times)-2)*length, "more than one in a period")
	t.Logf("%d processes had the lock %d times in %s, which is %.1f periods", len(all), len(times), last-first, float64(last-first)/float64(length))
}

func acquisitions(events []locktest.Event) (at []time.Duration) {
	for _, e := range events {
		if e.Kind == locktest.Acquired {
			at = append(at, e.Time)
		}
	}
	return at
}

// cooking is what a chef wrote, but for a line that its end cut off.
func (c *child) cooking(t testing.TB) []locktest.Event {
	t.Helper()
	_, err := c.output.Seek(0, io.SeekStart)
	require.NoError(t, err)
	text, err := io.ReadAll(c.output)
	require.NoError(t, err)
	events, err := locktest.ReadEvents(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	require.NoError(t, err)
	return events
}

// A command that a scheduler starts again and again, which never waits and knows
// nothing but its notes, does the work of every period.
func TestOneShotProcesses(t *testing.T) {
	base, notes := quick(t), quick(t)
	require.NoError(t, os.Chmod(notes, 0o700))
	var out bytes.Buffer
	for runs, turns := 0, 0; turns < 4; runs++ {
		require.Less(t, runs, 100_000)
		if p := (part{Base: base, Period: short, Who: notes}); p.oneShot(t, &out) {
			turns++
		}
	}
	require.Equal(t, 4, bytes.Count(out.Bytes(), []byte("\n")))
}

// oneShot is one run of such a command, with everything opened anew.
func (p part) oneShot(t *testing.T, out io.Writer) bool {
	t.Helper()
	src := open(t, p.Base, cooklock.Options{Period: p.Period, Notes: p.Who, Place: p.Base})
	lock, err := try(t, src)
	if err != nil {
		require.ErrorIs(t, err, source.ErrHeld)
		return false
	}
	require.NoError(t, json.NewEncoder(out).Encode(lock.Record().Token))
	return true
}
