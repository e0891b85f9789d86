package cloudshell

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// CallError says how a call of the API failed.
type CallError struct {
	Method string
	// Code and Message are the server's, if it said that the call failed. Code 100
	// means almost anything.
	Code    int
	Message string
	// Status is the HTTP status, 0 if there was none.
	Status int
	// Err is why there was no answer, or none that makes sense.
	Err error
	// Unsent says that the call never reached the server.
	Unsent bool
}

func (e *CallError) Error() string { return source.Shorten(e.text(), source.MaxWhy) }

func (e *CallError) text() string {
	switch {
	case e.Message != "" || e.Code != 0:
		return fmt.Sprintf("%s: CloudShell error %d: %s", e.Method, e.Code, e.Message)
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", e.Method, e.Err)
	case e.Status == http.StatusOK:
		return e.Method + ": the server says that it failed, and not why"
	}
	return fmt.Sprintf("%s: HTTP status %d %s", e.Method, e.Status, http.StatusText(e.Status))
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }

// InDoubt says that the call may have been carried out, or may be later.
func (e *CallError) InDoubt() bool {
	if e.Unsent || e.Status == http.StatusUnauthorized {
		return false
	}
	return e.Err != nil || e.Status != http.StatusOK
}

// The codes that mean something. 118 is a wrong password, and a token that is not
// accepted any more; 100 at a logon is an unknown user.
const (
	codeGeneral  = 100
	codeNoAccess = 118
)

// inDoubt says that a call may have been carried out, or may be later.
func inDoubt(err error) bool {
	var call *CallError
	return errors.As(err, &call) && call.InDoubt()
}

// aliasTaken says that the server refused a service because of its alias. That is
// the only failure whose words are known.
func aliasTaken(err error) bool { return saysServer(err, "alias already exists") }

// ended says that the reservation is over.
func ended(err error) bool { return saysServer(err, "reservation has ended") }

func saysServer(err error, words string) bool {
	var call *CallError
	return errors.As(err, &call) && strings.Contains(strings.ToLower(call.Message), words)
}

// refusesToken says that a call was not carried out because of its token.
func refusesToken(err error) bool {
	var call *CallError
	return errors.As(err, &call) && (call.Status == http.StatusUnauthorized || call.Code == codeNoAccess)
}

// accessError says that this client cannot log on: nothing can be done here.
type accessError struct {
	err  error
	hint string
}

func (e *accessError) Error() string { return e.err.Error() + " (" + e.hint + ")" }
func (e *accessError) Unwrap() error { return e.err }

// final says that trying once more is of no use.
func final(err error) bool {
	return errors.As(err, new(*accessError)) || errors.Is(err, source.ErrInvalid)
}

// opError names the step in which err came up.
func opError(op, name string, err error) error {
	if err == nil || errors.Is(err, source.ErrInvalid) {
		return err
	}
	return &source.OpError{Source: "cloudshell", Op: op, Name: name, Err: err}
}
