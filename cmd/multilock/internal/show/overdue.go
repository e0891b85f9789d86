package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
)

// Alarm is a severity, as in Nagios.
type Alarm string

// The alarms, from good to unknown.
const (
	AlarmOK       Alarm = "ok"
	AlarmWarning  Alarm = "warning"
	AlarmCritical Alarm = "critical"
	AlarmUnknown  Alarm = "unknown"
)

// Code is the exit code for a monitor.
func (a Alarm) Code() int {
	switch a {
	case AlarmOK:
		return console.ExitMonitorOK
	case AlarmWarning:
		return console.ExitMonitorWarning
	case AlarmCritical:
		return console.ExitMonitorCritical
	case AlarmUnknown:
	}
	return console.ExitMonitorUnknown
}

// worse reports whether an alarm is worse than another: a critical problem is worse than an unknown state.
func (a Alarm) worse(than Alarm) bool {
	order := map[Alarm]int{AlarmWarning: 1, AlarmUnknown: 2, AlarmCritical: 3}
	return order[a] > order[than]
}

// Worst returns the worst alarm of all jobs.
func Worst(jobs []OverdueJob) Alarm {
	worst := AlarmOK
	for _, job := range jobs {
		if job.Alarm.worse(worst) {
			worst = job.Alarm
		}
	}
	return worst
}

// OverdueJob is the status of a recurring job in --json.
type OverdueJob struct {
	Name  string `json:"name"`
	Alarm Alarm  `json:"alarm"`
	State string `json:"state"` // on time, done, running, late, failed, retry, unknown
	Why   string `json:"why,omitempty"`
	// Every is its schedule, given or expected; Tick that of its last run; Due when its next
	// success is or was expected. Times are the source's.
	Every     string    `json:"every,omitempty"`
	Tick      time.Time `json:"tick,omitzero"`
	Succeeded time.Time `json:"succeeded,omitzero"`
	Due       time.Time `json:"due,omitzero"`
	Late      float64   `json:"late_seconds"`
	Missed    int       `json:"missed"`
	Exit      *int      `json:"exit"`
	Signal    string    `json:"signal,omitempty"`
	Attempt   int       `json:"attempt,omitempty"`
	Host      string    `json:"host,omitempty"`
	// Running is the lock's holder, null if the lock is free, or was not inspected.
	Running *Lock `json:"running"`
}

// States in addition to those of results.
const (
	stateOnTime  = "on time"
	stateRunning = "running"
	stateLate    = "late"
)

// OverdueOf makes the JSON form of a job's status; running is the lock's holder, nil if it is free.
func OverdueOf(name string, s lockgroup.JobStatus, running *Lock) OverdueJob {
	v := OverdueJob{
		Name: name, Why: s.Why, Every: s.Every.String(), Succeeded: s.Succeeded.UTC(), Due: s.Due.UTC(),
		Late: s.Late.Seconds(), Missed: s.Missed, Running: running,
	}
	if s.Last != nil && s.Last.Foreign == "" {
		v.Tick, v.Exit, v.Signal, v.Attempt, v.Host = s.Last.Tick.UTC(), &s.Last.Exit, s.Last.Signal, s.Last.Attempt, s.Last.By.Host
	}
	v.judge(s)
	return v
}

// judge sets the alarm and the state, first without regard to a running job.
func (v *OverdueJob) judge(s lockgroup.JobStatus) {
	switch s.State {
	case lockgroup.JobWell:
		v.Alarm, v.State, v.Late = AlarmOK, stateOnTime, 0
		if s.Due.IsZero() {
			v.State = ResultDone
		}
	case lockgroup.JobRetry:
		v.Alarm, v.State, v.Late = AlarmWarning, ResultRetry, 0
	case lockgroup.JobFailed:
		v.Alarm, v.State, v.Late = AlarmCritical, ResultFailed, 0
	case lockgroup.JobLate:
		v.Alarm, v.State = AlarmCritical, stateLate
	case lockgroup.JobUnknown:
		v.Alarm, v.State, v.Late = AlarmUnknown, StateUnknown, 0
	}
	if v.Running != nil {
		v.judgeRunning(s)
	}
}

// judgeRunning adjusts for a running job: if it began in time, it has until the next tick; if it
// began late, or runs again after a failure, it is a warning.
func (v *OverdueJob) judgeRunning(s lockgroup.JobStatus) {
	since := time.Duration(-1)
	if v.Running.Age != nil {
		since = time.Duration(*v.Running.Age * float64(time.Second))
	}
	words := fmt.Sprintf("it has been running on %s for %s", v.Running.Host, Ago(v.Running.Age))
	switch {
	case s.State == lockgroup.JobUnknown && s.Last == nil:
		v.Alarm, v.State, v.Why = AlarmOK, stateRunning, words+", for the first time as far as is known"
	case s.State == lockgroup.JobLate && s.Overran:
		v.Why += "; " + words + ", beyond the tick that followed"
	case s.State == lockgroup.JobLate && !s.Due.IsZero() && since >= 0 && since >= s.Late-s.Within:
		v.Alarm, v.State, v.Why = AlarmOK, stateRunning, words
	case s.State == lockgroup.JobLate, s.State == lockgroup.JobFailed:
		v.Alarm, v.Why = AlarmWarning, v.Why+"; "+words
	case s.State == lockgroup.JobWell && !s.Due.IsZero():
		v.State, v.Why = stateRunning, words
	case v.Why != "":
		v.Why += "; " + words
	}
}

// IsLate is 1 for a late job, else 0, as metrics need it.
func (v OverdueJob) IsLate() float64 {
	if v.State == stateLate {
		return 1
	}
	return 0
}

// OverdueTable prints a table of jobs.
func OverdueTable(e *console.Env, jobs []OverdueJob) error {
	var table Table
	table.Row("NAME", "ALARM", "STATE", "LAST SUCCESS", "DUE", "LATE", "EVERY", "WHY")
	for _, v := range jobs {
		table.Row(console.Label(v.Name), v.Alarm, v.State, moment(v.Succeeded), moment(v.Due), v.lateCell(), Dash(v.Every), v.why())
	}
	return table.Print(e)
}

// moment formats a time of the source's clock, in the local time zone.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format(time.DateTime)
}

func (v OverdueJob) lateCell() string {
	if v.Late <= 0 {
		return "-"
	}
	return console.Short(time.Duration(v.Late * float64(time.Second)))
}

// why is what is wrong, with the end of the last run and the number of missed ticks.
func (v OverdueJob) why() string {
	text := v.Why
	switch {
	case v.Exit == nil || text == "":
	case v.Signal != "":
		text += fmt.Sprintf("; last ended by signal: %s on %s", v.Signal, v.Host)
	case *v.Exit != 0:
		text += fmt.Sprintf("; last ended with exit %d on %s", *v.Exit, v.Host)
	}
	if v.Missed > 0 && v.Alarm != AlarmOK {
		text += fmt.Sprintf("; %d missed", v.Missed)
	}
	return text
}

// Sentence describes the job on a monitor's line.
func (v OverdueJob) Sentence() string {
	text := console.Label(v.Name) + " is " + v.State
	switch v.State {
	case ResultFailed, StateUnknown:
		text = console.Label(v.Name) + " " + v.State
	case ResultRetry:
		text = console.Label(v.Name) + " failed and is to be retried"
	}
	if v.Late > 0 {
		text += " by " + v.lateCell()
	}
	return console.Harmless(text)
}

// OverdueSum counts the jobs by state.
func OverdueSum(jobs []OverdueJob) (late, failed, unknown int) {
	for _, v := range jobs {
		switch {
		case v.Alarm == AlarmUnknown:
			unknown++
		case v.State == stateLate:
			late++
		case v.State == ResultFailed, v.State == ResultRetry:
			failed++
		}
	}
	return late, failed, unknown
}

// Troubled describes the jobs that are not OK, the worst first.
func Troubled(jobs []OverdueJob) string {
	var texts []string
	for _, alarm := range []Alarm{AlarmCritical, AlarmUnknown, AlarmWarning} {
		for _, v := range jobs {
			if v.Alarm == alarm {
				texts = append(texts, v.Sentence())
			}
		}
	}
	if more := len(texts) - maxNamed; more > 0 {
		texts = append(texts[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
