package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
)

// Severity is the severity of a problem, as in Nagios.
type Severity string

// The severities, from good to unknown.
const (
	SeverityOK       Severity = "ok"
	SeverityWarning  Severity = "warning"
	SeverityCritical Severity = "critical"
	SeverityUnknown  Severity = "unknown"
)

// Code returns the exit code for a monitor.
func (a Severity) Code() int {
	switch a {
	case SeverityOK:
		return console.ExitMonitorOK
	case SeverityWarning:
		return console.ExitMonitorWarning
	case SeverityCritical:
		return console.ExitMonitorCritical
	case SeverityUnknown:
	}
	return console.ExitMonitorUnknown
}

// worse reports whether a severity is worse than another: a critical problem is worse than an unknown state.
func (a Severity) worse(than Severity) bool {
	order := map[Severity]int{SeverityWarning: 1, SeverityUnknown: 2, SeverityCritical: 3}
	return order[a] > order[than]
}

// Worst returns the worst severity of all jobs.
func Worst(jobs []OverdueJob) Severity {
	worst := SeverityOK
	for _, job := range jobs {
		if job.Severity.worse(worst) {
			worst = job.Severity
		}
	}
	return worst
}

// OverdueJob is the status of a recurring job in --json.
type OverdueJob struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	State    string   `json:"state"` // on_time, done, running, late, failed, retry, unknown
	Why      string   `json:"why,omitempty"`
	// Every is the schedule, given or expected; Tick is the tick of its last run; Due is when its next
	// success is or was expected. Times are the source's.
	Every     string    `json:"every,omitempty"`
	Tick      time.Time `json:"tick,omitzero"`
	Succeeded time.Time `json:"last_success,omitzero"`
	Due       time.Time `json:"due,omitzero"`
	Late      float64   `json:"late_seconds"`
	Missed    int       `json:"missed_ticks"`
	Exit      *int      `json:"exit"`
	Signal    string    `json:"signal,omitempty"`
	Attempt   int       `json:"attempt,omitempty"`
	Host      string    `json:"host,omitempty"`
	// Log is the command that prints the output of the last run, if the output is stored and the job is
	// critical.
	Log string `json:"log,omitempty"`
	// Running is the lock's holder, null if the lock is free or was not inspected.
	Running *Lock `json:"lock"`
}

// States in addition to those of results.
const (
	stateOnTime  = "on_time"
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

// judge sets the severity and the state, at first without considering a running job.
func (v *OverdueJob) judge(s lockgroup.JobStatus) {
	switch s.State {
	case lockgroup.JobWell:
		v.Severity, v.State, v.Late = SeverityOK, stateOnTime, 0
		if s.Due.IsZero() {
			v.State = ResultDone
		}
	case lockgroup.JobRetry:
		v.Severity, v.State, v.Late = SeverityWarning, ResultRetry, 0
	case lockgroup.JobFailed:
		v.Severity, v.State, v.Late = SeverityCritical, ResultFailed, 0
	case lockgroup.JobLate:
		v.Severity, v.State = SeverityCritical, stateLate
	case lockgroup.JobUnknown:
		v.Severity, v.State, v.Late = SeverityUnknown, StateUnknown, 0
	}
	if v.Running != nil {
		v.judgeRunning(s)
	}
}

// judgeRunning adjusts the state for a running job: if it started in time, it has until the next tick; if it
// started late, or runs again after a failure, it is a warning.
func (v *OverdueJob) judgeRunning(s lockgroup.JobStatus) {
	since := time.Duration(-1)
	if v.Running.Age != nil {
		since = time.Duration(*v.Running.Age * float64(time.Second))
	}
	words := fmt.Sprintf("it has been running on %s for %s", v.Running.Host, Ago(v.Running.Age))
	switch {
	case s.State == lockgroup.JobUnknown && s.Last == nil:
		v.Severity, v.State, v.Why = SeverityOK, stateRunning, words+", for the first time as far as is known"
	case s.State == lockgroup.JobLate && s.Overran:
		v.Why += "; " + words + ", beyond the tick that followed"
	case s.State == lockgroup.JobLate && !s.Due.IsZero() && since >= 0 && since >= s.Late-s.Within:
		v.Severity, v.State, v.Why = SeverityOK, stateRunning, words
	case s.State == lockgroup.JobLate, s.State == lockgroup.JobFailed:
		v.Severity, v.Why = SeverityWarning, v.Why+"; "+words
	case s.State == lockgroup.JobWell && !s.Due.IsZero():
		v.State, v.Why = stateRunning, words
	case v.Why != "":
		v.Why += "; " + words
	}
}

// IsLate returns 1 for a late job, else 0, as a metric.
func (v OverdueJob) IsLate() float64 {
	if v.State == stateLate {
		return 1
	}
	return 0
}

// OverdueTable prints a table of jobs.
func OverdueTable(e *console.Env, jobs []OverdueJob) error {
	var table Table
	table.Row("NAME", "SEVERITY", "STATE", "LAST SUCCESS", "DUE", "LATE", "EVERY", "WHY")
	for _, v := range jobs {
		table.Row(console.Label(v.Name), v.Severity, v.State, moment(v.Succeeded), moment(v.Due), v.lateCell(), Dash(v.Every), v.why())
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

// why describes the problem, the end of the last run and the number of missed ticks.
func (v OverdueJob) why() string {
	text := v.Why
	switch {
	case v.Exit == nil || text == "":
	case v.Signal != "":
		text += fmt.Sprintf("; last ended by signal: %s on %s", v.Signal, v.Host)
	case *v.Exit != 0:
		text += fmt.Sprintf("; last ended with exit %d on %s", *v.Exit, v.Host)
	}
	if v.Missed > 0 && v.Severity != SeverityOK {
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
		case v.Severity == SeverityUnknown:
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
	for _, severity := range []Severity{SeverityCritical, SeverityUnknown, SeverityWarning} {
		for _, v := range jobs {
			if v.Severity == severity {
				texts = append(texts, v.Sentence())
			}
		}
	}
	if more := len(texts) - maxNamed; more > 0 {
		texts = append(texts[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
