package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/multilock/go/lockgroup"
)

// calendar is the last ticks of a recurring job.
type calendar struct {
	Name, Every string
	Ticks       []tick
	Counts      string
}

// tick is one cell of a calendar.
type tick struct {
	State      tickState
	Mark, Text string
}

type tickState string

// A tick is late if its success came more than half an interval after it, as for "overdue".
const (
	tickRan     tickState = "ran"
	tickLate    tickState = "late"
	tickMissed  tickState = "missed"
	tickFailed  tickState = "failed"
	tickRunning tickState = "running"
)

// marks help readers who cannot tell the colours apart.
var marks = map[tickState]string{tickRan: "·", tickLate: "L", tickMissed: "–", tickFailed: "×", tickRunning: "▸"}

// maxTicks is how many ticks of a job are shown, and maxCalendars of how many jobs.
const maxTicks, maxCalendars = 60, 200

func calendarsOf(t *Timeline) (all []calendar, more int) {
	for i := range t.Jobs {
		cells := ticksOf(&t.Jobs[i])
		switch {
		case len(cells) == 0:
		case len(all) == maxCalendars:
			more++
		default:
			all = append(all, calendar{printable(t.Jobs[i].Name, maxLine), t.Jobs[i].schedule().every.String(), cells, countsOf(cells)})
		}
	}
	return all, more
}

// schedule returns the zero value if the schedule is unknown.
func (j *Job) schedule() recurrence {
	if j.recurs == nil {
		return recurrence{}
	}
	return *j.recurs
}

// ticksOf returns the last ticks of a job, the oldest first.
func ticksOf(job *Job) (cells []tick) {
	var runs []*Run
	for i := range job.Runs {
		if !job.Runs[i].Tick.IsZero() {
			runs = append(runs, &job.Runs[i])
		}
	}
	if len(runs) == 0 {
		return nil
	}
	slices.SortStableFunc(runs, func(a, b *Run) int { return a.Tick.Compare(b.Tick) })
	recurs := job.schedule()
	var before time.Time // the tick of the last cell, zero if unknown
	for len(runs) > 0 {
		n := 1
		for n < len(runs) && runs[n].Tick.Equal(runs[0].Tick) {
			n++
		}
		cells = append(cells, missedTicks(runs[0].Missed, before, recurs.every)...)
		cells = append(cells, tickOf(runs[:n], recurs.every))
		before, runs = runs[0].Tick, runs[n:]
	}
	cells = append(cells, missedTicks(recurs.overdue, before, recurs.every)...)
	if job.State == Running {
		cells = append(cells, newTick(tickRunning, time.Time{}, ""))
	}
	return cells[max(len(cells)-maxTicks, 0):]
}

// tickOf judges the attempts at one tick: the last one counts.
func tickOf(attempts []*Run, every lockgroup.Every) tick {
	last := attempts[len(attempts)-1]
	how := last.exitText()
	if n := last.Attempt; n > 1 {
		how = fmt.Sprintf("%s at attempt %d", cmp.Or(how, string(last.State)), n)
	}
	switch {
	case last.State == Running, last.State == Open:
		return newTick(tickRunning, last.Tick, how)
	case last.State != Done:
		return newTick(tickFailed, last.Tick, cmp.Or(how, string(last.State)))
	case !every.IsZero() && last.End.Sub(last.Tick) > every.Next(last.Tick).Sub(last.Tick)/2: //nolint:mnd // half an interval
		return newTick(tickLate, last.Tick, "by "+durationText(last.End.Sub(last.Tick).Seconds()))
	}
	return newTick(tickRan, last.Tick, how)
}

// missedTicks returns ticks without a run, with their times if the tick before them and the schedule are known.
func missedTicks(n int, before time.Time, every lockgroup.Every) (cells []tick) {
	known := !before.IsZero() && !every.IsZero() && n <= maxTicks
	for range min(n, maxTicks) {
		if known {
			before = every.Next(before)
		}
		cells = append(cells, newTick(tickMissed, before, ""))
		if !known {
			cells[len(cells)-1] = newTick(tickMissed, time.Time{}, "")
		}
	}
	return cells
}

func newTick(state tickState, at time.Time, how string) tick {
	text := string(state)
	if !at.IsZero() {
		text = at.UTC().Format("2006-01-02 15:04 UTC") + ": " + text
	}
	if how != "" {
		text += ", " + how
	}
	return tick{state, marks[state], text}
}

// countsOf summarises a calendar: "57 ran, 2 late, 1 missed".
func countsOf(cells []tick) (text string) {
	for _, state := range []tickState{tickRan, tickLate, tickMissed, tickFailed, tickRunning} {
		n := 0
		for _, c := range cells {
			if c.State == state {
				n++
			}
		}
		if n > 0 && text != "" {
			text += ", "
		}
		if n > 0 {
			text += fmt.Sprintf("%d %s", n, state)
		}
	}
	return text
}
