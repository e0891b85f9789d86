// Package report makes a timeline of what is known about a lock group: its
// history, the results of its jobs, and the locks that are held. It also writes
// that as one web page which needs nothing else. It reads no source itself.
package report

import "time"

// Timeline is all that a report shows. Its JSON is described in docs/json.md.
type Timeline struct {
	Base  string    `json:"base"`
	Group string    `json:"group"`
	Title string    `json:"title"`
	Made  time.Time `json:"made"` // by the clock of the host that made the report
	Since time.Time `json:"since,omitzero"`
	// Missing says what the source could not tell.
	Missing []string `json:"missing,omitempty"`
	Summary Summary  `json:"summary"`
	Hosts   []Host   `json:"hosts"`
	// Clocks are the differences between two hosts' clocks that the history proves.
	Clocks []ClockGap `json:"clocks"`
	Jobs   []Job      `json:"jobs"`
}

// Summary counts. Every job is counted in exactly one of Done, Failed, Retry, Running,
// Claimed, Pending and Other. Of the group's list all jobs are counted, also those
// from before Since, if any job of it ended or runs since then.
type Summary struct {
	Jobs    int `json:"jobs"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Retry   int `json:"retry"` // failed, and may be tried again
	Running int `json:"running"`
	Claimed int `json:"claimed"` // of the list: a live host has them, and nothing tells which of them run now
	Pending int `json:"pending"` // of the list: not begun, or given back
	Other   int `json:"other"`   // neither of these: lost, crashed, interrupted, given back, ...
	// Incomplete are those of Done whose output is not kept as a whole.
	Incomplete int `json:"incomplete"`
	// Runs counts what is drawn; TakenOver the locks that were broken, Lost those
	// that their holders lost, Refused the refusals that are in the history.
	Runs      int `json:"runs"`
	TakenOver int `json:"taken_over"`
	Lost      int `json:"lost"`
	Refused   int `json:"refused"`
	Missed    int `json:"missed"` // ticks of --every that went without a run

	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Elapsed float64   `json:"elapsed_seconds"`
	Busy    float64   `json:"busy_seconds"` // the runs' durations together
	PerHour float64   `json:"per_hour"`     // jobs with a result
	// Left is how long the list will take at this rate, while hosts work on it; else 0.
	Left float64 `json:"left_seconds"`
}

// Host is one lane of the timeline.
type Host struct {
	Host    string    `json:"host"`
	Machine string    `json:"machine,omitempty"`
	Rows    int       `json:"rows"` // the most runs at a time
	Runs    int       `json:"runs"`
	Done    int       `json:"done"`   // runs that succeeded
	Failed  int       `json:"failed"` // runs that did not, in whatever way
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Busy    float64   `json:"busy_seconds"`
	// Utilisation is the share of Rows that was at work from Start to End, 0 to 1.
	Utilisation float64 `json:"utilisation"`
}

// ClockGap says that one host's clock was ahead of another's by at least AtLeast.
type ClockGap struct {
	Ahead   string  `json:"ahead"`
	Behind  string  `json:"behind"`
	AtLeast float64 `json:"at_least_seconds"`
	Name    string  `json:"name"` // the lock that shows it
}

// Job is a name with all that happened under it.
type Job struct {
	Name string `json:"name"`
	// SlotOf and Slot are set for a slot of a name (run --slots).
	SlotOf  string `json:"slot_of,omitempty"`
	Slot    int    `json:"slot,omitempty"`
	State   State  `json:"state"`
	Attempt int    `json:"attempt,omitempty"`
	Why     string `json:"why,omitempty"`
	Output  string `json:"output,omitempty"` // why its output is not kept as a whole
	Command string `json:"command,omitempty"`
	// Log is the file with the job's output, for jobs in trouble.
	Log     string `json:"log,omitempty"`
	Refused int    `json:"refused,omitempty"`
	Missed  int    `json:"missed,omitempty"` // ticks that went without a run
	Runs    []Run  `json:"runs"`             // in the order in which they ended
	// Done and Left are for a chunk of a list, which stands for its jobs: how many of them
	// are done and not listed by themselves, and how many have no result.
	Done int `json:"done,omitempty"`
	Left int `json:"left,omitempty"`

	chunk   bool
	listed  bool   // it is counted with the group's list
	claimed string // by which live holder its chunk is, and why that counts as alive
}

// Run is one span of time under a job's lock: an attempt, a command, or the time
// for which a script held it.
type Run struct {
	Host    string `json:"host"`
	Machine string `json:"machine,omitempty"`
	PID     int    `json:"pid,omitempty"`
	User    string `json:"user,omitempty"`
	State   State  `json:"state"`
	// Start and End are by the clock of Host, but for the end of a crashed run: that is
	// when its lock was broken, by the clock of who broke it. Zero is unknown, or not yet.
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`
	Row     int       `json:"row"` // within the host's lane, from 0
	Attempt int       `json:"attempt,omitempty"`
	Exit    *int      `json:"exit,omitempty"`
	Signal  string    `json:"signal,omitempty"`
	Why     string    `json:"why,omitempty"`
	Output  string    `json:"output,omitempty"` // as in Job
	Command string    `json:"command,omitempty"`
	Waited  float64   `json:"waited_seconds,omitempty"` // for the lock, before Start
	Fence   uint64    `json:"fence,omitempty"`
	Token   string    `json:"token,omitempty"`
	// Tick is the one that it was for, by the source's clock, and Missed how many just
	// before went without a run.
	Tick   time.Time `json:"tick,omitzero"`
	Missed int       `json:"missed,omitempty"`
	Broken *Breaking `json:"broken,omitempty"`
}

// Breaking says who cleared a run's lock, and on what evidence.
type Breaking struct {
	Time time.Time `json:"time"`
	Host string    `json:"host"`
	PID  int       `json:"pid,omitempty"`
	User string    `json:"user,omitempty"`
	Why  string    `json:"why"`
}

// State is how a run, or a job, stands.
type State string

// The states of runs; those of jobs are the same, and three more.
const (
	Done        State = "done"
	Failed      State = "failed"
	Lost        State = "lost"        // the lock was lost while it was held
	Crashed     State = "crashed"     // the holder died: its lock was broken, or may be
	Interrupted State = "interrupted" // it was told to end; nothing is recorded
	Released    State = "released"    // given back by a script: there is no exit code
	Running     State = "running"
	Open        State = "open" // it began, and nothing says how it ended

	Retry     State = "retry"     // failed, and may be tried again
	Unknown   State = "unknown"   // there is a result that cannot be read
	Forgotten State = "forgotten" // its result was removed: it may run again
)

// Trouble says whether somebody should look at it.
func (j *Job) Trouble() bool {
	switch j.State {
	case Failed, Lost, Crashed, Unknown, Retry, Interrupted, Open:
		return true
	}
	return j.Output != ""
}
