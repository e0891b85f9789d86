package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
)

// waitView is what "wait --json" prints.
type waitView struct {
	Base   string       `json:"base"`
	Group  string       `json:"group"`
	Open   bool         `json:"open"` // the barrier has opened
	OK     bool         `json:"ok"`   // and everything is done
	Done   int          `json:"done"`
	Failed []failedView `json:"failed"`
	// Incomplete are done, and their output is not complete.
	Incomplete []incompleteView `json:"incomplete"`

	Crashed []lockView `json:"crashed"`
	Missing []string   `json:"missing"`
	Short   int        `json:"short"`
	Held    []lockView `json:"held"`
	Untold  string     `json:"untold,omitempty"`
	Waited  float64    `json:"waited_seconds"`
	Exit    int        `json:"exit"`
	Error   string     `json:"error,omitempty"`
}

// failedView is the result of a job that failed for good.
type failedView struct {
	Name    string `json:"name"`
	Exit    int    `json:"exit"`
	Signal  string `json:"signal,omitempty"`
	Why     string `json:"why,omitempty"`
	Output  string `json:"output,omitempty"`
	Host    string `json:"host,omitempty"`
	Command string `json:"command,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Foreign string `json:"foreign,omitempty"`
	Ended   string `json:"ended,omitempty"` // when, by the clock of that host
}

func viewOfWait(src *openedSource, r lockgroup.Report, waited time.Duration, err error) waitView {
	v := waitView{
		Base: src.opt.place(), Group: src.opt.group, Open: err == nil || console.ExitCode(err) == console.ExitNotDone, OK: err == nil,
		Done: r.Done, Failed: []failedView{}, Incomplete: viewsOfIncomplete(r.Incomplete), Crashed: viewsOf(r.Crashed), Missing: append([]string{}, r.Missing...),
		Short: r.Short, Held: viewsOf(r.Held), Waited: waited.Seconds(), Exit: console.ExitCode(err), Error: explain(err),
	}
	if r.Untold != nil {
		v.Untold = r.Untold.Error()
	}
	for _, f := range r.Failed {
		failed := viewOfFailed(f)
		if !f.Start.IsZero() {
			failed.Ended = f.Start.Add(f.Duration).UTC().Format(time.RFC3339)
		}
		v.Failed = append(v.Failed, failed)
	}
	return v
}

func viewOfFailed(f multilock.Result) failedView {
	return failedView{
		Name: f.Name, Exit: f.Exit, Signal: f.Signal, Why: f.Why, Output: f.Output, Host: f.By.Host, Command: f.Command, Attempt: f.Attempt, Foreign: f.Foreign,
	}
}

func viewsOf(holdings []lockgroup.Holding) []lockView {
	views := []lockView{}
	for _, h := range holdings {
		views = append(views, viewOf(h.Name, h.Sighting))
	}
	return views
}

// most is how many names or holders a message lists.
const most = 20

// tell says in words what is not done.
func (v waitView) tell(e *env, o *waitOptions) {
	for _, f := range atMost(e, v.Failed) {
		e.Say("%s", f.sentence())
	}
	o.output.tell(e, &o.common, v.Incomplete)
	for _, l := range atMost(e, v.Crashed) {
		e.Say("job %q died: it was run by %s (%s)", l.Name, l.holder(), l.Why)
	}
	if v.Untold != "" {
		e.Say("warning: how the jobs ended is not known, only that nothing is held any more: %s", v.Untold)
	}
	if v.Open {
		return
	}
	if len(v.Missing) > 0 {
		e.Say("no final result yet of %d: %s", len(v.Missing), listed(v.Missing))
	}
	if v.Short > 0 {
		e.Say("%d results are missing", v.Short)
	}
	for _, l := range atMost(e, v.Held) {
		e.Say("lock %q is %s: %s (%s)", l.Name, l.State, l.holder(), l.Why)
	}
}

// atMost keeps a message from having thousands of lines.
func atMost[T any](e *env, all []T) []T {
	if len(all) <= most {
		return all
	}
	e.Say("%d in all, of which these are the first:", len(all))
	return all[:most]
}

func listed(names []string) string {
	var labels []string
	for _, name := range names[:min(len(names), most)] {
		labels = append(labels, console.Label(name))
	}
	text := strings.Join(labels, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (f failedView) sentence() string {
	text := fmt.Sprintf("job %q failed", f.Name)
	switch {
	case f.Foreign != "" && f.Host == "":
		return text + ": its result cannot be understood: " + f.Foreign
	case f.Foreign != "":
		return fmt.Sprintf("job %q is not done, run on %s%s: %s", f.Name, f.Host, f.at(), f.Foreign)
	case f.Signal != "":
		text += " by signal " + f.Signal
	default:
		text += fmt.Sprintf(" with exit code %d", f.Exit)
	}
	if f.Host != "" {
		text += " on " + f.Host + f.at()
	}
	if f.Attempt > 1 {
		text += fmt.Sprintf(" (attempt %d)", f.Attempt)
	}
	if f.Why != "" {
		text += ": " + f.Why
	}
	return console.AndOutput(text, f.Output)
}

// at says when it ended, in this host's time zone.
func (f failedView) at() string {
	end, err := time.Parse(time.RFC3339, f.Ended)
	if err != nil {
		return ""
	}
	return " at " + end.Local().Format(time.DateTime)
}

// holder names who holds a lock.
func (l lockView) holder() string {
	h := multilock.Holder{User: l.User, Command: l.Command}
	h.Host, h.PID = l.Host, l.PID
	return h.String()
}
