package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// lockView is a lock as --json shows it. Durations are seconds; null is unknown.
type lockView struct {
	Name    string   `json:"name"`
	State   string   `json:"state"` // held, suspect, dead, free
	Why     string   `json:"why"`
	Token   string   `json:"token,omitempty"`
	Host    string   `json:"host,omitempty"`
	PID     int      `json:"pid,omitempty"`
	User    string   `json:"user,omitempty"`
	Command string   `json:"command,omitempty"`
	Job     bool     `json:"job,omitempty"`
	TTL     float64  `json:"ttl_seconds,omitempty"`
	Age     *float64 `json:"age_seconds"`
	Silence *float64 `json:"silence_seconds"`
	Foreign string   `json:"foreign,omitempty"`
}

func viewOf(name string, s multilock.Sighting) lockView {
	r := s.Record
	return lockView{
		Name: name, State: s.State.String(), Why: s.Why, Token: r.Token,
		Host: r.Holder.Host, PID: r.Holder.PID, User: r.Holder.User, Command: r.Holder.Command,
		Job: r.Job, TTL: r.TTL.Seconds(), Age: seconds(s.Age), Silence: seconds(s.Silence), Foreign: r.Foreign,
	}
}

func seconds(d time.Duration) *float64 {
	if d == source.Unknown {
		return nil
	}
	s := d.Seconds()
	return &s
}

// describe says who holds a lock, since when, and why that counts as alive.
func describe(name string, s multilock.Sighting) string {
	return fmt.Sprintf("lock %q is %s", name, console.HeldBy(s))
}

// explain is what the user is told about an error; nothing if there is nothing
// that the job has not told already.
func explain(err error) string {
	var (
		jobEnd *console.JobError
		held   *multilock.HeldError
		usage  *console.UsageError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &jobEnd) && !errors.Is(err, multilock.ErrLost) && !errors.Is(err, errRuntimeOut) && !errors.Is(err, multilock.ErrOver):
		return remainder(err)
	case errors.As(err, &held):
		return explainHeld(err, held)
	case errors.As(err, &usage):
		return usage.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// remainder is what went wrong beside a job that ended by itself.
func remainder(err error) string {
	return strings.ReplaceAll(strings.Join(besides(err), "; "), "\n", "; ")
}

// besides are the errors that have nothing of a job's end in them.
func besides(err error) []string {
	if !errors.As(err, new(*console.JobError)) {
		return []string{err.Error()}
	}
	switch e := err.(type) { //nolint:errorlint // it is what is wrapped that is looked for
	case interface{ Unwrap() error }:
		return besides(e.Unwrap())
	case interface{ Unwrap() []error }:
		var texts []string
		for _, one := range e.Unwrap() {
			texts = append(texts, besides(one)...)
		}
		return texts
	}
	return nil
}

func explainHeld(err error, held *multilock.HeldError) string {
	text := describe(held.Name, held.Sighting)
	var (
		stopped *console.SignalError
		coded   *console.CodedError
	)
	switch {
	case errors.As(err, &stopped):
		return stopped.Error() + ", while waiting: " + text
	case errors.As(err, &coded):
		text = coded.Text + ": " + text
	}
	var located *locatedError
	token := held.Sighting.Record.Token
	if token == "" || !errors.As(err, &located) || errors.As(err, new(*lastingError)) {
		return text // why it counts as held says what can clear it
	}
	return text + "; if it hangs, clear it with: " + located.clearing(held.Name, token)
}
