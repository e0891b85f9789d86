// Package report builds a timeline of a lock group from its history, its results and its held
// locks, and renders it as one self-contained web page. It reads no source itself.
package report

import (
	"time"

	"github.com/multilock/go/lockgroup"
)

// Timeline is the content of a report. docs/json.md describes its JSON.
type Timeline struct {
	Base  string    `json:"base"`
	Group string    `json:"group"`
	Title string    `json:"title"`
	Made  time.Time `json:"made"` // by the clock of the host that made the report
	Since time.Time `json:"since,omitzero"`
	// Missing lists what the source could not provide.
	Missing []string `json:"unreadable,omitempty"`
	Summary Summary  `json:"summary"`
	Hosts   []Host   `json:"hosts"`
	// Clocks are clock differences between hosts that the history proves.
	Clocks []ClockGap `json:"clocks"`
	Jobs   []Job      `json:"jobs"`

	// Index is the file of the page over all groups, if it exists.
	Index string `json:"-"`

	timing *Timing
}

// Summary counts. Every job is in exactly one of Done, Failed, Retry, Running, Claimed, Pending and Other. If
// any job of the group's list ended or runs since Since, all jobs of the list are counted.
type Summary struct {
	Jobs    int `json:"total"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Retry   int `json:"retry"` // failed, and may be tried again
	Running int `json:"running"`
	Claimed int `json:"claimed"` // of the list: a live host holds them; which of them run now is not known
	Pending int `json:"pending"` // of the list: not started, or returned
	Other   int `json:"other"`   // lost, crashed, interrupted, released, ...
	// Incomplete counts those of Done whose output was not captured completely.
	Incomplete int `json:"output_lost_count"`
	// Runs counts the runs drawn, TakenOver the broken locks, Lost the locks that their holders
	// lost, and Refused the failed acquisitions in the history.
	Runs      int `json:"run_count"`
	TakenOver int `json:"locks_broken"`
	Lost      int `json:"locks_lost"`
	Refused   int `json:"not_acquired"`
	Missed    int `json:"missed_ticks"` // ticks of --every without a run

	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Elapsed float64   `json:"duration_seconds"`
	Busy    float64   `json:"busy_seconds"`    // total duration of the runs
	Rate    float64   `json:"jobs_per_second"` // of jobs that ended
	// Left estimates the time until the list is done, while hosts work on it; otherwise 0.
	Left float64 `json:"remaining_seconds"`
}

// Host is one lane of the timeline.
type Host struct {
	Host    string    `json:"host"`
	Machine string    `json:"machine,omitempty"`
	Rows    int       `json:"rows"` // the most runs at the same time
	Runs    int       `json:"run_count"`
	Done    int       `json:"done"`   // runs that succeeded
	Failed  int       `json:"failed"` // runs that ended in any other way
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Busy    float64   `json:"busy_seconds"`
	// Utilisation is the share of Rows that was busy from Start to End, 0 to 1.
	Utilisation float64 `json:"utilisation"`
}

// ClockGap means that the clock of host Ahead was at least AtLeast ahead of Behind's.
type ClockGap struct {
	Ahead   string  `json:"ahead"`
	Behind  string  `json:"behind"`
	AtLeast float64 `json:"at_least_seconds"`
	Name    string  `json:"name"` // the lock that proves it
}

// Job is a name and everything that happened under it.
type Job struct {
	Name string `json:"name"`
	// SlotOf and Slot are set for a slot of a name (run --slots).
	SlotOf  string `json:"slot_of,omitempty"`
	Slot    int    `json:"slot,omitempty"`
	State   State  `json:"state"`
	Attempt int    `json:"attempt,omitempty"`
	Why     string `json:"why,omitempty"`
	Output  string `json:"output_lost_because,omitempty"` // why its output is incomplete
	Command string `json:"command,omitempty"`
	// Log is the file with the job's output, if the job needs attention.
	Log     string `json:"log,omitempty"`
	Refused int    `json:"not_acquired,omitempty"`
	Missed  int    `json:"missed_ticks,omitempty"` // ticks without a run
	Runs    []Run  `json:"runs"`                   // ordered by their end
	// Done and Left describe a chunk, which stands for jobs of a list: Done counts those that are
	// done and not listed separately, Left those without a result.
	Done int `json:"done,omitempty"`
	Left int `json:"unfinished,omitempty"`
	// Tail is the end of its output, for the page alone.
	Tail string `json:"-"`

	recurs  *recurrence // nil unless it is a recurring job
	chunk   bool
	listed  bool   // counted with the group's list
	claimed string // the chunk's live holder, and the evidence that it is alive
}

// recurrence is how often a job is to run, and how many ticks have passed since its last run.
type recurrence struct {
	every   lockgroup.Every
	overdue int
}

// Run is a time span under a job's lock: an attempt, a command, or a script's hold.
type Run struct {
	Host    string `json:"host"`
	Machine string `json:"machine,omitempty"`
	PID     int    `json:"pid,omitempty"`
	User    string `json:"user,omitempty"`
	State   State  `json:"state"`
	// Start and End are by Host's clock, except the End of a crashed run: that is when its lock was
	// broken, by the breaker's clock. Zero is unknown, or not yet.
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Row     int       `json:"row"` // within the host's lane, from 0
	Attempt int       `json:"attempt,omitempty"`
	Exit    *int      `json:"exit,omitempty"`
	Signal  string    `json:"signal,omitempty"`
	Why     string    `json:"why,omitempty"`
	Output  string    `json:"output_lost_because,omitempty"` // as in Job
	Command string    `json:"command,omitempty"`
	Waited  float64   `json:"waited_seconds,omitempty"` // for the lock, before Start
	Fence   uint64    `json:"fence,omitempty"`
	Token   string    `json:"token,omitempty"`
	// Tick is the run's tick, by the source's clock. Missed counts the ticks without a run just before it.
	Tick   time.Time `json:"tick,omitzero"`
	Missed int       `json:"missed_ticks,omitempty"`
	Broken *Breaking `json:"broken_by,omitempty"`
}

// Breaking is the process that broke a run's lock, with the evidence.
type Breaking struct {
	Time time.Time `json:"time"`
	Host string    `json:"host"`
	PID  int       `json:"pid,omitempty"`
	User string    `json:"user,omitempty"`
	Why  string    `json:"why"`
}

// State is the state of a run or a job.
type State string

// The states of runs. Jobs have three more.
const (
	Done        State = "done"
	Failed      State = "failed"
	Lost        State = "lost"        // the lock was lost while it was held
	Dead        State = "dead"        // the holder died: its lock was broken, or can be
	Interrupted State = "interrupted" // terminated; no result is recorded
	Released    State = "released"    // released by a script, which has no exit code
	Running     State = "running"
	Open        State = "open" // started, with no known end

	Retry   State = "retry"   // failed, may be retried
	Unknown State = "unknown" // the result cannot be read
	Deleted State = "deleted" // the result was removed: the job may run again
)

// Trouble reports whether the job needs attention.
func (j *Job) Trouble() bool {
	switch j.State {
	case Failed, Lost, Dead, Unknown, Retry, Interrupted, Open:
		return true
	}
	return j.Output != ""
}
