package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
)

// Failure is the result of a job that failed permanently.
type Failure struct {
	Name       string `json:"name"`
	Exit       int    `json:"exit"`
	Signal     string `json:"signal,omitempty"`
	Why        string `json:"why,omitempty"`
	OutputLost string `json:"output_lost_because,omitempty"`
	Host       string `json:"host,omitempty"`
	Command    string `json:"command,omitempty"`
	Attempt    int    `json:"attempt,omitempty"`
	Unreadable string `json:"unreadable_because,omitempty"`
	End        string `json:"end,omitempty"` // by that host's clock
}

// FailureOf makes a Failure of a result.
func FailureOf(f multilock.Result) Failure {
	return Failure{
		Name: f.Name, Exit: f.Exit, Signal: f.Signal, Why: f.Why, OutputLost: f.Output, Host: f.By.Host, Command: f.Command, Attempt: f.Attempt, Unreadable: f.Foreign,
	}
}

// OutputLost is a job that is done, but whose output is incomplete.
type OutputLost struct {
	Name    string `json:"name"`
	Host    string `json:"host,omitempty"`
	Because string `json:"output_lost_because"`
}

// OutputLostOf makes an OutputLost of each result.
func OutputLostOf(results []multilock.Result) []OutputLost {
	views := []OutputLost{}
	for _, r := range results {
		views = append(views, OutputLost{r.Name, r.By.Host, r.Output})
	}
	return views
}

// Most bounds how many names or holders a message lists.
const Most = 20

// AtMost returns the first Most items, and reports the total if there are more.
func AtMost[T any](e *console.Env, all []T) []T {
	if len(all) <= Most {
		return all
	}
	e.Say("%d in all, of which these are the first:", len(all))
	return all[:Most]
}

// Listed joins the first Most names.
func Listed(names []string) string {
	var labels []string
	for _, name := range names[:min(len(names), Most)] {
		labels = append(labels, console.Label(name))
	}
	text := strings.Join(labels, ", ")
	if more := len(names) - Most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// How describes how the job failed, without its host: "with exit code 3".
func (f Failure) How() string {
	switch {
	case f.Unreadable != "":
		return "and its result cannot be understood"
	case f.Signal != "":
		return "by signal " + f.Signal
	case f.Why != "":
		return fmt.Sprintf("with exit code %d (%s)", f.Exit, f.Why)
	}
	return fmt.Sprintf("with exit code %d", f.Exit)
}

// Sentence describes the failure.
func (f Failure) Sentence() string {
	text := Subject(f.Name) + " failed"
	switch {
	case f.Unreadable != "" && f.Host == "":
		return fmt.Sprintf("%s: its result%s cannot be understood: %s", text, nameOfChunk(f.Name), f.Unreadable)
	case f.Unreadable != "":
		return fmt.Sprintf("%s is not done, run on %s%s: %s", Subject(f.Name), f.Host, f.at(), f.Unreadable)
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
	return console.AndOutput(text, f.OutputLost)
}

// at returns when the job ended, in the local time zone.
func (f Failure) at() string {
	end, err := time.Parse(time.RFC3339, f.End)
	if err != nil {
		return ""
	}
	return " at " + end.Local().Format(time.DateTime)
}

// Ending describes how a job ended, and on which host and when, by that host's clock.
func Ending(r multilock.Result) string {
	end := r.Start.Add(r.Duration).Local().Format("2006-01-02 15:04:05")
	text := fmt.Sprintf("%s on %s pid %d at %s", ExitWords(r), r.By.Host, r.By.PID, end)
	if r.User != "" {
		text = fmt.Sprintf("%s on %s pid %d by %s at %s", ExitWords(r), r.By.Host, r.By.PID, r.User, end)
	}
	if r.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", r.Attempt)
	}
	return console.AndOutput(text, r.Output)
}

// ExitWords describes how a job ended.
func ExitWords(r multilock.Result) string {
	switch {
	case r.Foreign != "":
		return "unknown"
	case r.Signal != "":
		return "signal: " + r.Signal
	case r.OK():
		return "success"
	}
	return fmt.Sprintf("exit %d", r.Exit)
}
