package locktest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	. "github.com/multilock/go/multilock/locktest"
)

// The events of these histories: process, kind, acquisition, time.

func at(proc string, kind Kind, token string, time time.Duration) Event {
	return Event{Proc: proc, Kind: kind, Name: "nightly", Token: token, Time: time}
}

func acquired(proc, token string, time time.Duration) Event { return at(proc, Acquired, token, time) }

func until(e Event, tenure time.Duration) Event {
	e.Until = tenure
	return e
}

func during(e Event, start time.Duration) Event {
	e.Start = start
	return e
}

func fenced(proc, token string, start, time time.Duration, number uint64) Event {
	e := during(at(proc, Fenced, token, time), start)
	e.Fence = number
	return e
}

func inGroup(e Event, name string) Event {
	e.Name = name
	return e
}

func TestCheckAcceptsWhatCanBeTrue(t *testing.T) {
	histories := map[string][]Event{
		"nothing": {},
		"one after the other": {
			acquired("a", "A", 10), at("a", Releasing, "A", 20), at("a", Released, "A", 25),
			acquired("b", "B", 22), at("b", Releasing, "B", 30), at("b", Released, "B", 31),
		},
		"taken over after a loss": {acquired("a", "A", 10), at("a", Lost, "A", 20), acquired("b", "B", 20)},
		"told of the loss late, but the tenure had ended": {
			until(acquired("a", "A", 10), 20), acquired("b", "B", 25), at("a", Lost, "A", 40),
		},
		"the tenure ends without a word": {until(acquired("a", "A", 10), 20), acquired("b", "B", 20)},
		"renewed, then silent": {
			until(acquired("a", "A", 10), 20), until(at("a", Renewed, "A", 15), 40), acquired("b", "B", 40),
		},
		"killed": {
			acquired("a", "A", 10), inGroup(at("a", Killed, "", 20), ""), acquired("b", "B", 21),
		},
		"at work until it was killed": {
			inGroup(at("a", Killed, "", 20), ""), acquired("a", "A", 21), acquired("b", "B", 22),
		},
		"the first to end counts": {
			acquired("a", "A", 10), acquired("b", "B", 15), at("a", Releasing, "A", 20), at("a", Lost, "A", 12),
		},
		"an acquisition that returned after its tenure": {
			until(acquired("a", "A", 50), 20), acquired("b", "B", 30),
		},
		"an unknown outcome is no belief": {
			acquired("a", "A", 10), at("b", Unsure, "B", 15), at("a", Releasing, "A", 20),
		},
		"a release without an answer": {
			acquired("a", "A", 10), at("a", Releasing, "A", 20), at("a", Unsure, "A", 30), acquired("b", "B", 25),
			during(at("c", Refused, "A", 24), 22),
		},
		"another lock": {acquired("a", "A", 10), inGroup(acquired("b", "B", 10), "weekly")},
		"refused while it was held": {
			acquired("a", "A", 10), during(at("b", Refused, "A", 18), 12), at("a", Releasing, "A", 14), at("a", Released, "A", 15),
		},
		"refused by an unknown process": {during(at("b", Refused, "", 18), 12)},
		"fences grow": {
			acquired("a", "A", 10), fenced("a", "A", 11, 12, 1), fenced("a", "A", 13, 14, 2), at("a", Releasing, "A", 20),
			acquired("b", "B", 30), fenced("b", "B", 31, 32, 7),
		},
		"fences drawn at the same time": {
			acquired("a", "A", 10), fenced("a", "A", 11, 20, 1), fenced("a", "A", 12, 14, 2),
		},
		"in any order": {
			acquired("b", "B", 22), at("a", Releasing, "A", 20), acquired("a", "A", 10),
		},
	}
	for name, events := range histories {
		t.Run(name, func(t *testing.T) { require.NoError(t, Check(events)) })
	}
}

func TestCheckFindsWhatCannotBeTrue(t *testing.T) {
	histories := map[string]struct {
		events []Event
		want   string
	}{
		"two believe": {
			[]Event{acquired("a", "A", 10), acquired("b", "B", 19), at("a", Releasing, "A", 20)},
			`lock "nightly": b (B) believed in it from 19ns on, while a (A) did so until 20ns`,
		},
		"nobody ever ends": {
			[]Event{acquired("a", "A", 10), acquired("b", "B", 1000)}, "did so until the end",
		},
		"two believe, with a short one in between": {
			[]Event{
				acquired("a", "A", 10), at("a", Releasing, "A", 100),
				until(acquired("b", "B", 20), 15), acquired("c", "C", 50),
			},
			"c (C) believed in it from 50ns on, while a (A)",
		},
		"before the tenure ended": {
			[]Event{until(acquired("a", "A", 10), 20), until(at("a", Renewed, "A", 15), 40), acquired("b", "B", 39)}, "believed",
		},
		"killed later": {
			[]Event{acquired("a", "A", 10), acquired("b", "B", 15), at("a", Killed, "", 20)}, "believed",
		},
		"somebody else was killed": {
			[]Event{acquired("a", "A", 10), at("c", Killed, "", 12), acquired("b", "B", 15)}, "believed",
		},
		"a tenure that rose from the dead": {
			[]Event{until(acquired("a", "A", 10), 20), until(during(at("a", Renewed, "A", 31), 30), 60)}, "after its tenure had ended",
		},
		"a token twice": {
			[]Event{acquired("a", "A", 10), at("a", Releasing, "A", 20), acquired("b", "A", 30)}, "not a new one",
		},
		"no token":           {[]Event{acquired("a", "", 10)}, "not a new one"},
		"released twice":     {[]Event{acquired("a", "A", 10), at("a", Released, "A", 20), at("a", Released, "A", 30)}, "twice"},
		"never acquired":     {[]Event{at("a", Released, "A", 20)}, "never acquired"},
		"somebody else's":    {[]Event{acquired("a", "A", 10), at("b", Releasing, "A", 20)}, "never acquired"},
		"of another lock":    {[]Event{acquired("a", "A", 10), inGroup(at("a", Releasing, "A", 20), "weekly")}, "never acquired"},
		"an unknown kind":    {[]Event{at("a", "stolen", "A", 20)}, `unknown kind of event "stolen"`},
		"refused by a ghost": {[]Event{acquired("a", "A", 10), at("a", Released, "A", 20), during(at("b", Refused, "A", 30), 25)}, "given back"},
		"a fence twice": {
			[]Event{acquired("a", "A", 10), fenced("a", "A", 11, 12, 5), fenced("a", "A", 11, 12, 5)}, "number 5 was given to a and to a",
		},
		"a fence that shrinks": {
			[]Event{
				acquired("a", "A", 10), fenced("a", "A", 11, 12, 5), at("a", Releasing, "A", 20),
				acquired("b", "B", 30), fenced("b", "B", 31, 32, 4),
			},
			"b was given the fence number 4 after a had 5",
		},
	}
	for name, tt := range histories {
		t.Run(name, func(t *testing.T) {
			require.ErrorContains(t, Check(tt.events), tt.want)
		})
	}
}

func TestCheckNamesEveryFault(t *testing.T) {
	err := Check([]Event{acquired("a", "A", 10), acquired("b", "B", 20), acquired("c", "C", 30)})
	require.Equal(t, 2, strings.Count(err.Error(), "believed"))
}

func TestEventsAreLines(t *testing.T) {
	var file bytes.Buffer
	a, b := NewRecorder(&file, "a"), NewRecorder(&file, "b")
	before := Now()
	require.NoError(t, a.Record(Event{Kind: Acquired, Name: "with\nline end", Token: "A", Start: before, Until: before + time.Hour}))
	require.NoError(t, b.Record(Event{Kind: Fenced, Name: "nightly", Fence: 1 << 63, Time: 7}))
	require.Equal(t, 2, strings.Count(file.String(), "\n"))
	file.WriteString(`{"proc":"c","kin`) // its writer was killed

	events, err := ReadEvents(&file)
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, "a", events[0].Proc)
	require.Equal(t, "with\nline end", events[0].Name)
	require.GreaterOrEqual(t, events[0].Time, before)
	require.Equal(t, Event{Proc: "b", Kind: Fenced, Name: "nightly", Fence: 1 << 63, Time: 7}, events[1])

	_, err = ReadEvents(strings.NewReader("{}\nnonsense\n"))
	require.ErrorContains(t, err, "line 2")
}

func TestEventsOfManyFiles(t *testing.T) {
	dir := t.TempDir()
	for _, proc := range []string{"a", "b"} {
		file, err := os.Create(filepath.Join(dir, "log."+proc))
		require.NoError(t, err)
		require.NoError(t, NewRecorder(file, proc).Record(Event{Kind: Acquired}))
		require.NoError(t, file.Close())
	}
	events, err := ReadEventFiles(filepath.Join(dir, "log.*"))
	require.NoError(t, err)
	require.Len(t, events, 2)
	require.Equal(t, "b", events[1].Proc)
	require.Zero(t, Finished(events))
	ends := []Event{{Kind: Releasing}, {Kind: Released}, {Kind: Lost}, {Kind: Killed}}
	require.Equal(t, 2, Finished(append(events, ends...)))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "log.c"), []byte("nonsense\n"), 0o600))
	_, err = ReadEventFiles(filepath.Join(dir, "log.*"))
	require.ErrorContains(t, err, "log.c: read events: line 1")
}

// The checker finds what no correct register does.
func TestCheckSwaps(t *testing.T) {
	begin := func(value string, at time.Duration) SwapEvent {
		return SwapEvent{Op: "begin", Value: value, Time: at}
	}
	end := func(value, old string, n uint64, at time.Duration) SwapEvent {
		return SwapEvent{Op: "end", Value: value, Old: old, Number: n, Time: at}
	}
	good := []SwapEvent{begin("a", 1), end("a", "", 1, 2), begin("b", 3), begin("c", 3), end("c", "b", 3, 9)}
	confirmed, err := CheckSwaps(good)
	require.NoError(t, err)
	require.Equal(t, 2, confirmed)
	open := append(slices.Clone(good), begin("d", 3), begin("e", 12), end("e", "b2", 6, 13), begin("b2", 3), begin("never", 3))
	_, err = CheckSwaps(open)
	require.NoError(t, err, "whoever was not told may have taken effect, at any time after its beginning")

	for name, more := range map[string][]SwapEvent{
		"returned twice":           {begin("d", 10), end("d", "b", 4, 11)},
		"was never begun":          {end("x", "", 4, 11)},
		"used twice":               {begin("a", 10)},
		"nobody swapped in":        {begin("d", 10), end("d", "x", 4, 11)},
		"replaced nothing":         {begin("d", 10), end("d", "", 4, 11)},
		"told that it is not":      {begin("d", 10), {Op: "fail", Value: "d", Time: 11}, begin("e", 12), end("e", "d", 5, 13)},
		"number 5, replaced":       {begin("d", 10), end("d", "c", 5, 11)},
		"both have number 3":       {begin("d", 3), end("d", "a", 3, 11)},
		"was over before":          {begin("d", 10), begin("e", 12), end("e", "c", 4, 13), end("d", "e", 5, 11)},
		"a peek showed \"x\"":      {{Op: "peek", Value: "x", Number: 7, Time: 11}},
		"a peek showed \"b\"":      {{Op: "peek", Value: "b", Number: 2, Time: 2}},
		"a peek showed \"c\" with": {{Op: "peek", Value: "c", Number: 4, Time: 11}},
		"a peek showed \"\"":       {{Op: "peek", Number: 2, Time: 11}},
		// Of the swaps whose process got no answer, "d" has a number as soon as a peek sees it.
		"both have number 4":         {begin("d", 10), {Op: "peek", Value: "d", Number: 4, Time: 11}, begin("e", 10), end("e", "c", 4, 13)},
		"showed \"d\" with number 5": {begin("d", 10), {Op: "peek", Value: "d", Number: 4, Time: 11}, {Op: "peek", Value: "d", Number: 5, Time: 11}},
		"\"d\", number 5, was over":  {begin("d", 10), {Op: "peek", Value: "d", Number: 5, Time: 11}, begin("e", 12), end("e", "c", 4, 13)},
		// A number that no process got, or whose swap began too late for it.
		"had number 4, before \"d\"": {begin("e", 10), end("e", "d", 6, 13), begin("d", 10)},
		"had number 4, before \"f\"": {begin("f", 10), {Op: "peek", Value: "f", Number: 5, Time: 11}, begin("late", 12)},
	} {
		_, err := CheckSwaps(append(append([]SwapEvent(nil), good...), more...))
		require.ErrorContains(t, err, name)
	}
}

// A note names the lock, and records when its validity ends: no later than the lock itself reports, if it
// is asked after the note and the clock after that.
func TestNotesOfALock(t *testing.T) {
	src, err := fslock.Open(fslock.Options{Base: t.TempDir()})
	require.NoError(t, err)
	lock, err := multilock.TryAcquire(t.Context(), src, "nightly", multilock.Options{TTL: time.Hour})
	require.NoError(t, err)
	var file bytes.Buffer
	r := NewRecorder(&file, "a")
	require.NoError(t, r.Note(lock, Acquired, 7))
	require.NoError(t, r.Note(lock, Releasing, 0))
	remaining := lock.Remaining()
	latest := Now() + remaining
	require.NoError(t, lock.Release(t.Context()))
	require.NoError(t, src.Close())
	require.ErrorIs(t, r.Note(lock, Renewed, 0), multilock.ErrLost, "it is no longer held")

	events, err := ReadEvents(&file)
	require.NoError(t, err)
	require.Len(t, events, 2)
	acquired, releasing := events[0], events[1]
	want := Event{Proc: "a", Kind: Acquired, Name: "nightly", Token: lock.Record().Token, Start: 7, Time: acquired.Time, Until: acquired.Until}
	require.Equal(t, want, acquired)
	require.Greater(t, acquired.Until, acquired.Time)
	require.LessOrEqual(t, acquired.Until, latest)
	want.Kind, want.Start, want.Time, want.Until = Releasing, 0, releasing.Time, 0
	require.Equal(t, want, releasing)
}
