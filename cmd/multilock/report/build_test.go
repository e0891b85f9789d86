package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/report"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at returns the time some seconds after noon.
func at(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

func held(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func code(n int) *int { return &n }

// story builds the events of one acquisition.
type story struct {
	name, token, host string
	events            []source.Event
}

func (s *story) tell(seconds float64, what source.EventKind, change func(*source.Event)) *story {
	e := source.Event{Time: at(seconds), What: what, Name: s.name, Token: s.token, By: process.Identity{Host: s.host, PID: 7}, User: "ann", Command: "work"}
	if change != nil {
		change(&e)
	}
	s.events = append(s.events, e)
	return s
}

func (s *story) acquired(seconds float64, fence uint64) *story {
	return s.tell(seconds, source.EventAcquired, func(e *source.Event) { e.Fence, e.Waited = fence, 2*time.Second })
}

func (s *story) committed(seconds, took float64, attempt, exit int) *story {
	return s.tell(seconds, source.EventCommitted, func(e *source.Event) { e.Held, e.Attempt, e.Exit = held(took), attempt, code(exit) })
}

func (s *story) ended(seconds, took float64, what source.EventKind, exit *int) *story {
	return s.tell(seconds, what, func(e *source.Event) { e.Held, e.Exit = held(took), exit })
}

// brokenBy adds the event of another host that broke this lock.
func (s *story) brokenBy(seconds float64, host string) *story {
	return s.tell(seconds, source.EventBroke, func(e *source.Event) {
		e.Holder = &multilock.Holder{Identity: e.By, User: "ann", Command: "work"}
		e.By, e.User, e.Why, e.Command = process.Identity{Host: host, PID: 9}, "bob", "silent", ""
	})
}

func build(in report.Input, stories ...*story) *report.Timeline {
	for _, s := range stories {
		in.Events = append(in.Events, s.events...)
	}
	in.Made = at(100)
	return report.Build(in)
}

// only returns the single job of a timeline.
func only(t *testing.T, timeline *report.Timeline) report.Job {
	t.Helper()
	require.Len(t, timeline.Jobs, 1)
	return timeline.Jobs[0]
}

func states(job report.Job) []report.State {
	var all []report.State
	for _, r := range job.Runs {
		all = append(all, r.State)
	}
	return all
}

// A batch only records results: each is a run of its duration.
func TestAttemptsOfABatch(t *testing.T) {
	t.Parallel()
	s := &story{name: "a", token: "1", host: "n1"}
	job := only(t, build(report.Input{}, s.committed(10, 3, 1, 4).committed(15, 2, 2, 0)))
	require.Equal(t, report.Done, job.State)
	require.Equal(t, []report.State{report.Failed, report.Done}, states(job))
	first, second := job.Runs[0], job.Runs[1]
	require.Equal(t, []time.Time{at(7), at(10), at(13), at(15)}, []time.Time{first.Start, first.End, second.Start, second.End})
	require.Equal(t, 4, *first.Exit)
	require.Equal(t, []any{"n1", 7, "ann", "work", 2}, []any{second.Host, second.PID, second.User, second.Command, second.Attempt})
}

// "run --once" records with each attempt how long the lock had been held: the attempts still do not
// overlap, and the release is not another run.
func TestAttemptsUnderOneLock(t *testing.T) {
	t.Parallel()
	s := &story{name: "a", token: "1", host: "n1"}
	s.acquired(10, 5).committed(14, 4, 1, 1).committed(20, 10, 2, 1).tell(21, source.EventReleased, func(e *source.Event) { e.Attempt, e.Exit = 2, code(1) })
	job := only(t, build(report.Input{}, s))
	require.Equal(t, []report.State{report.Failed, report.Failed}, states(job))
	require.Equal(t, []time.Time{at(10), at(14)}, []time.Time{job.Runs[0].Start, job.Runs[1].Start})
	require.InDelta(t, 2, job.Runs[0].Waited, 0)
	require.Zero(t, job.Runs[1].Waited)
}

// The end of a lock determines the state of its run.
func TestEndsOfRuns(t *testing.T) {
	t.Parallel()
	plain := func() *story { return (&story{name: "a", token: "1", host: "n1"}).acquired(10, 1) }
	shell := &story{name: "a", token: "1", host: "n1"}
	shell.tell(10, source.EventAcquired, func(e *source.Event) { e.Command = "acquire for pid 3" })
	for name, one := range map[string]struct {
		story *story
		want  report.State
	}{
		"success":       {plain().ended(12, 2, source.EventReleased, code(0)), report.Done},
		"failure":       {plain().ended(12, 2, source.EventReleased, code(3)), report.Failed},
		"lost":          {plain().ended(12, 2, source.EventLost, code(143)), report.Lost},
		"lost, late":    {plain().ended(11, 2, source.EventReleased, code(0)).ended(12, 2, source.EventLost, nil), report.Lost},
		"broken":        {plain().brokenBy(12, "n2"), report.Dead},
		"broken, alive": {plain().brokenBy(11, "n2").ended(12, 2, source.EventLost, code(1)), report.Lost},
		"nothing":       {plain(), report.Open},
		"not started":   {plain().tell(12, source.EventReleased, func(e *source.Event) { e.Why = "command not found" }), report.Failed},
		"interrupted":   {plain().tell(12, source.EventReleased, func(e *source.Event) { e.Attempt, e.Exit = 1, code(143) }), report.Interrupted},
		"by a script":   {shell.tell(12, source.EventReleased, func(e *source.Event) { e.Command, e.Why = "acquire for pid 3", "process 3 ended" }), report.Released},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := only(t, build(report.Input{}, one.story))
			require.Equal(t, one.want, job.State)
			require.Equal(t, []report.State{one.want}, states(job))
			require.Equal(t, at(10), job.Runs[0].Start)
			if one.want != report.Open {
				require.Equal(t, at(12), job.Runs[0].End)
			}
		})
	}
}

// An attempt that was lost after another had been recorded is a separate run.
func TestLostInTheSecondAttempt(t *testing.T) {
	t.Parallel()
	s := (&story{name: "a", token: "1", host: "n1"}).acquired(10, 1).committed(14, 4, 1, 1)
	s.tell(20, source.EventLost, func(e *source.Event) { e.Attempt, e.Held = 2, held(10) })
	timeline := build(report.Input{}, s)
	job := only(t, timeline)
	require.Equal(t, []report.State{report.Failed, report.Lost}, states(job))
	require.Equal(t, []time.Time{at(14), at(20)}, []time.Time{job.Runs[1].Start, job.Runs[1].End})
	require.Equal(t, 1, timeline.Summary.Lost)
}

// The dead host of a batch has written nothing: it is known from the event that broke its lock.
func TestCrashedHostOfABatch(t *testing.T) {
	t.Parallel()
	dead := (&story{name: "a", token: "1", host: "n1"}).brokenBy(20, "n2")
	after := (&story{name: "a", token: "2", host: "n2"}).committed(25, 4, 1, 0)
	timeline := build(report.Input{}, dead, after)
	job := only(t, timeline)
	require.Equal(t, report.Done, job.State)
	require.Equal(t, []report.State{report.Dead, report.Done}, states(job))
	crashed := job.Runs[0]
	require.Equal(t, "n1", crashed.Host)
	require.True(t, crashed.Start.IsZero(), "nobody wrote it down")
	require.Equal(t, at(20), crashed.End)
	require.Equal(t, &report.Breaking{Time: at(20), Host: "n2", PID: 9, User: "bob", Why: "silent"}, crashed.Broken)
	require.Equal(t, 1, timeline.Summary.TakenOver)
	require.Equal(t, 1, timeline.Summary.Done)
}

// A lock can be released on another host, whose clock does not matter.
func TestGivenBackByAnotherHost(t *testing.T) {
	t.Parallel()
	s := (&story{name: "a", token: "1", host: "n1"}).acquired(10, 1)
	s.tell(500, source.EventReleased, func(e *source.Event) {
		e.By.Host, e.By.PID, e.Held, e.Command, e.Why = "n2", 99, held(5), "", "with its token"
	})
	job := only(t, build(report.Input{}, s))
	require.Equal(t, at(15), job.Runs[0].End)
	require.Equal(t, []any{"n1", 7}, []any{job.Runs[0].Host, job.Runs[0].PID})
	require.Equal(t, report.Released, job.State)
}

func TestResultWithoutHistory(t *testing.T) {
	t.Parallel()
	r := multilock.Result{Name: "a", Token: "1", By: process.Identity{Host: "n1"}, Exit: 2, Final: true, Attempt: 3, Start: at(5), Duration: time.Second, Why: "no disk"}
	job := only(t, build(report.Input{Results: []multilock.Result{r}}))
	require.Equal(t, []any{report.Failed, 3, "no disk"}, []any{job.State, job.Attempt, job.Why})
	require.Equal(t, []time.Time{at(5), at(6)}, []time.Time{job.Runs[0].Start, job.Runs[0].End})

	known := (&story{name: "a", token: "1", host: "n1"}).committed(6, 1, 3, 2)
	require.Len(t, only(t, build(report.Input{Results: []multilock.Result{r}}, known)).Runs, 1, "the history has it, too")
	r.Final = false
	require.Equal(t, report.Retry, only(t, build(report.Input{Results: []multilock.Result{r}}, known)).State)
}

func TestStatesOfJobs(t *testing.T) {
	t.Parallel()
	foreign := multilock.Result{Name: "a", Foreign: "torn"}
	failed := func() *story { return (&story{name: "a", token: "1", host: "n1"}).committed(6, 1, 1, 2) }
	for name, one := range map[string]struct {
		in    report.Input
		story *story
		want  report.State
	}{
		"unreadable":          {report.Input{Results: []multilock.Result{foreign}}, &story{}, report.Unknown},
		"deleted":             {report.Input{}, failed().tell(9, source.EventForgot, nil), report.Deleted},
		"run after that":      {report.Input{}, failed().tell(5, source.EventForgot, nil).committed(6, 1, 2, 2), report.Failed},
		"success, not read":   {report.Input{Recorded: map[string]bool{"a": true}}, (&story{name: "a", token: "1", host: "n1"}).committed(6, 1, 1, 0), report.Done},
		"refused, never held": {report.Input{}, (&story{name: "a", token: "1", host: "n1"}).tell(3, source.EventRefused, nil), report.Released},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, one.want, only(t, build(one.in, one.story)).State)
		})
	}
}

func holding(name, token string, state source.State) report.Input {
	record := source.Record{Name: name, Token: token, Prepared: at(50)}
	record.Holder.Host = "n1"
	return report.Input{Held: []lockgroup.Holding{{Name: name, Observation: multilock.Observation{State: state, Record: record, Why: "seen"}}}}
}

// A lock that is held now is running; the history and the results may be newer, because they were read after
// the inspection.
func TestHeldNow(t *testing.T) {
	t.Parallel()
	in := holding("a", "1", multilock.StateHeld)
	job := only(t, build(in))
	require.Equal(t, report.Running, job.State)
	require.Equal(t, at(50), job.Runs[0].Start)
	require.True(t, job.Runs[0].End.IsZero())

	begun := (&story{name: "a", token: "1", host: "n1"}).acquired(40, 1)
	job = only(t, build(in, begun))
	require.Equal(t, []report.State{report.Running}, states(job))
	require.Equal(t, at(40), job.Runs[0].Start)

	require.Equal(t, report.Dead, only(t, build(holding("a", "1", multilock.StateDead), begun)).State)

	retrying := (&story{name: "a", token: "1", host: "n1"}).committed(60, 5, 1, 1)
	job = only(t, build(in, retrying))
	require.Equal(t, []report.State{report.Failed, report.Running}, states(job))
	require.Equal(t, 2, job.Runs[1].Attempt)
	require.Equal(t, at(60), job.Runs[1].Start)

	released := (&story{name: "a", token: "1", host: "n1"}).acquired(40, 1).ended(51, 11, source.EventReleased, code(1))
	require.Equal(t, []report.State{report.Failed}, states(only(t, build(in, released))))
	committed := (&story{name: "a", token: "1", host: "n1"}).committed(51, 1, 1, 0)
	require.Equal(t, []report.State{report.Done}, states(only(t, build(in, committed))))
	in.Results = []multilock.Result{{Name: "a", Token: "1", Exit: 1, Final: true, Attempt: 1, Start: at(50), Duration: time.Second}}
	require.Equal(t, []report.State{report.Failed}, states(only(t, build(in))))
}

func TestSlots(t *testing.T) {
	t.Parallel()
	s := (&story{name: lockgroup.SlotName("render", 2), token: "1", host: "n1"}).acquired(1, 1)
	job := only(t, build(report.Input{}, s))
	require.Equal(t, "render", job.SlotOf)
	require.Equal(t, 2, job.Slot)
}

func TestNothing(t *testing.T) {
	t.Parallel()
	timeline := build(report.Input{})
	require.Equal(t, report.Summary{}, timeline.Summary)
	require.NotNil(t, timeline.Jobs, "JSON has a list, not null")
	require.NotNil(t, timeline.Hosts)
	require.NotNil(t, timeline.Clocks)
}

func TestUnended(t *testing.T) {
	t.Parallel()
	s := (&story{name: "a", token: "1"}).acquired(1, 1)
	require.Equal(t, map[[2]string]bool{{"a", "1"}: true}, report.Unended(s.events))
	for _, end := range []source.EventKind{source.EventReleased, source.EventLost, source.EventBroke} {
		s := (&story{name: "a", token: "1"}).acquired(1, 1)
		require.Empty(t, report.Unended(s.tell(2, end, nil).events))
	}
}

// A chunk of which only the summary was read stands for its jobs, except the failed ones, which are listed.
// The events of its commits add nothing, and its lock is not a job's.
func TestChunksStandForTheirJobs(t *testing.T) {
	chunk := func(c source.Chunk) multilock.Result {
		c.To = c.From + 63
		r := multilock.Result{Name: joblist.ChunkName(source.Range{From: c.From, To: c.To}), Token: "t", By: process.Identity{Host: "node1"}, Start: noon, Duration: time.Minute, Chunk: &c}
		r.Final = c.Final()
		return r
	}
	failed := source.ChunkJob{Number: 70, Name: "page70", Exit: 3, Attempt: 2, Start: noon.UnixMilli(), Duration: 5e6}
	done, bad, begun := chunk(source.Chunk{From: 1, Done: 64, Recorded: 64}), chunk(source.Chunk{From: 65, Done: 63, Failed: 1, Recorded: 64, Jobs: []source.ChunkJob{failed}}), chunk(source.Chunk{From: 129, Done: 4, Recorded: 4})
	died := (&story{name: "#jobs-193-256", token: "x", host: "node2"}).brokenBy(9, "node1")
	in := report.Input{Made: at(90), Results: []multilock.Result{done, bad, begun}, Events: append(died.events, source.CommittedEvent(done, at(60)))}
	in.Held = []lockgroup.Holding{{Name: begun.Name, Observation: multilock.Observation{State: multilock.StateHeld, Record: source.Record{Token: "t"}}}}
	built := report.Build(in)
	sum := built.Summary
	require.Equal(t, []int{64 + 64 + 64 + 64, 64 + 63 + 4, 1, 60, 64}, []int{sum.Jobs, sum.Done, sum.Failed, sum.Running, sum.Other})
	states := map[string]report.State{}
	for _, job := range built.Jobs {
		states[job.Name] = job.State
		require.Len(t, job.Runs, 1)
	}
	require.Equal(t, map[string]report.State{done.Name: report.Done, bad.Name: report.Done, "page70": report.Failed, begun.Name: report.Running, "#jobs-193-256": report.Dead}, states)
}
