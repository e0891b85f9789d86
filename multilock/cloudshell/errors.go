package cloudshell

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

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
	// noAccess says what to do about credentials that are not accepted, "" if they are.
	noAccess string
}

func (e *CallError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.Status, http.StatusText(e.Status))
	switch {
	case e.Message != "" || e.Code != 0:
		text = fmt.Sprintf("CloudShell error %d: %s", e.Code, e.Message)
	case e.Err != nil:
		text = e.Err.Error()
	case e.Status == http.StatusOK:
		text = "the server says that it failed, and not why"
	}
	if text = source.Shorten(e.Method+": "+text, source.MaxWhy); e.noAccess != "" {
		text += " (" + e.noAccess + ")"
	}
	return text
}

// Unwrap gives the cause.
func (e *CallError) Unwrap() error { return e.Err }

// InDoubt says that the call may have been carried out, or may be later.
func (e *CallError) InDoubt() bool {
	return !e.Unsent && e.Status != http.StatusUnauthorized && (e.Err != nil || e.Status != http.StatusOK)
}

// senseless is the error of an answer that cannot be used.
func senseless(method, why string) error {
	return &CallError{Method: method, Status: http.StatusOK, Err: errors.New(why)}
}

// The codes that mean something. 118 is a wrong password, and a token that is not
// accepted any more; 100 at a logon is an unknown user.
const (
	codeGeneral  = 100
	codeNoAccess = 118
)

func inDoubt(err error) bool {
	var call *CallError
	return errors.As(err, &call) && call.InDoubt()
}

// aliasTaken says that the server refused a service because of its alias. The words of
// other failures are not known.
func aliasTaken(err error) bool { return saysServer(err, "alias already exists") }

func saysServer(err error, words string) bool {
	var call *CallError
	return errors.As(err, &call) && strings.Contains(strings.ToLower(call.Message), words)
}

// refusesToken says that a call was not carried out because of its token.
func refusesToken(err error) bool {
	var call *CallError
	return errors.As(err, &call) && (call.Status == http.StatusUnauthorized || call.Code == codeNoAccess)
}

// apiFailure says that the server answered that a call failed, for a reason that has
// to do with the call.
func apiFailure(err error) bool {
	var call *CallError
	return errors.As(err, &call) && !call.InDoubt() && !call.Unsent && !final(err)
}

// final says that to try again is of no use.
func final(err error) bool {
	var call *CallError
	return errors.As(err, &call) && call.noAccess != "" || errors.Is(err, source.ErrInvalid)
}

// inClear is the price of HTTP, and of a certificate that is not verified.
const inClear = "then anything between here and the server can read the password and the token"

// withAdvice says what to do about a server that cannot be talked to in this way. A server
// speaks HTTP or HTTPS on the same port, and often has a self-signed certificate.
func (c *client) withAdvice(err error) error {
	advice := ""
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		advice = "have HTTPS set up there, or add scheme=http to the URL: " + inClear
	case errors.As(err, new(x509.HostnameError)):
		advice = "write the server's name as its certificate has it, or add insecure=true to the URL: " + inClear
	case errors.As(err, new(*tls.CertificateVerificationError)):
		advice = "name the certificate that vouches for the server (a self-signed one vouches for itself) with cafile=FILE, or add insecure=true to the URL: " + inClear
	case c.opt.Scheme == schemeHTTPS && errors.As(err, new(tls.RecordHeaderError)):
		advice = "the server may speak HTTP there: if so, have HTTPS set up, or add scheme=http to the URL: " + inClear
	case c.opt.Scheme == schemeHTTP && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "malformed HTTP")):
		advice = "the server may speak HTTPS there: if so, leave scheme=http out of the URL"
	default:
		return err
	}
	return fmt.Errorf("%w; %s", err, advice)
}

// wantsTLS recognizes what a server that wants HTTPS says in plain HTTP.
func (c *client) wantsTLS(status int, body []byte) error {
	if c.opt.Scheme == schemeHTTP && status == http.StatusBadRequest && bytes.Contains(body, []byte("HTTPS")) {
		return errors.New("the server speaks HTTPS there; leave scheme=http out of the URL")
	}
	return nil
}
