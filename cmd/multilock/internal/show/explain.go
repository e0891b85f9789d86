// Package show formats locks, results, errors and progress as text, tables and JSON.
package show

import (
	"errors"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Explain returns the message for an error, "" if it has already been reported.
func Explain(err error) string {
	var (
		jobEnd *console.JobError
		held   *multilock.HeldError
		usage  *console.UsageError
	)
	switch {
	case err == nil, errors.As(err, new(*console.ReportedError)):
		return ""
	case errors.As(err, &jobEnd) && !errors.Is(err, multilock.ErrLost) && !errors.As(err, new(*console.CodedError)) && !errors.Is(err, multilock.ErrOver):
		return remainder(err)
	case errors.As(err, &held):
		return explainHeld(err, held)
	case errors.As(err, &usage):
		return usage.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// remainder describes what went wrong apart from the job's own failure.
func remainder(err error) string {
	return strings.ReplaceAll(strings.Join(otherErrors(err), "; "), "\n", "; ")
}

// otherErrors returns the texts of the errors that do not wrap a job's failure.
func otherErrors(err error) []string {
	if !errors.As(err, new(*console.JobError)) {
		return []string{err.Error()}
	}
	switch e := err.(type) { //nolint:errorlint // it is what is wrapped that is looked for
	case interface{ Unwrap() error }:
		return otherErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		var texts []string
		for _, one := range e.Unwrap() {
			texts = append(texts, otherErrors(one)...)
		}
		return texts
	}
	return nil
}

func explainHeld(err error, held *multilock.HeldError) string {
	text := describe(held.Name, held.Observation)
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
	var located *place.LocatedError
	token := held.Observation.Record.Token
	starved := coded != nil && coded.Code == console.ExitStarved
	if token == "" || !starved && !missedHeartbeat(held.Observation) || !errors.As(err, &located) || errors.As(err, new(*place.LastingError)) {
		return text // Why explains what can clear the lock
	}
	return text + "; " + breakRisk(held.Observation.Record) + ", clear it with: " + located.Place.Clearing(held.Name, token)
}

// missedHeartbeat reports whether the holder has missed a heartbeat or never sends any. Breaking the
// lock of a healthy holder would let two jobs run at once.
func missedHeartbeat(s multilock.Observation) bool {
	return s.State == multilock.StateSuspect || s.Record.Heartbeat == 0 || s.Silence > 2*s.Record.Heartbeat
}

// breakRisk describes the condition and the risk of a forced break.
func breakRisk(r source.Record) string {
	if r.Heartbeat == 0 {
		return "if nothing works under it"
	}
	return "if it hangs (after that its job may go on for up to " + console.Short(r.TTL) + ")"
}

// Refusal makes the JSON form of a command's final error.
func Refusal(err error, text string, exit int) console.Message {
	m := console.Message{Level: "error", Message: text, Exit: &exit}
	var held *multilock.HeldError
	if errors.As(err, &held) {
		m.Lock = LockOf(held.Name, held.Observation)
	}
	return m
}
