package cloudshell

import (
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

// callError is why a call of the API failed.
type callError struct {
	method   string
	code     int // the server's, like message, if it reported a failure
	message  string
	status   int    // the HTTP status, 0 if there was none
	err      error  // why there was no valid answer
	unsent   bool   // the request never reached the server
	noAccess string // a hint if the credentials were rejected
}

func (e *callError) Error() string {
	text := fmt.Sprintf("HTTP status %d %s", e.status, http.StatusText(e.status))
	switch {
	case e.message != "" || e.code != 0:
		text = fmt.Sprintf("CloudShell error %d: %s", e.code, e.message)
	case e.err != nil:
		text = e.err.Error()
	case e.status == http.StatusOK:
		text = "the server reported a failure without a reason"
	}
	if text = source.Shorten(e.method+": "+text, source.MaxWhy); e.noAccess != "" {
		text += " (" + e.noAccess + ")"
	}
	return text
}

func (e *callError) Unwrap() error { return e.err }

// senseless returns the error of an invalid answer.
func senseless(method, why string) error {
	return &callError{method: method, status: http.StatusOK, err: errors.New(why)}
}

// The known error codes. 118 is a wrong password, or a token that is no longer valid. 100 can mean
// almost anything; at a logon, an unknown user.
const (
	codeGeneral  = 100
	codeNoAccess = 118
)

// callOf returns the callError that an error wraps, or an empty one.
func callOf(err error) *callError {
	call := &callError{status: http.StatusOK}
	_ = errors.As(err, &call)
	return call
}

// inDoubt reports whether a call may have been carried out, or may be later.
func inDoubt(err error) bool {
	call := callOf(err)
	return !call.unsent && call.status != http.StatusUnauthorized && (call.err != nil || call.status != http.StatusOK)
}

// messageHas reports whether the server's message contains these words. Only the following two
// messages of the server are known.
func messageHas(err error, words string) bool {
	return strings.Contains(strings.ToLower(callOf(err).message), words)
}

func aliasTaken(err error) bool { return messageHas(err, "alias already exists") }
func ended(err error) bool      { return messageHas(err, "reservation has ended") }

// refusesToken reports whether a call was rejected because of its token.
func refusesToken(err error) bool {
	call := callOf(err)
	return call.status == http.StatusUnauthorized || call.code == codeNoAccess
}

// apiFailure reports whether the server answered that the call failed, for a reason that is
// specific to the call.
func apiFailure(err error) bool {
	call := callOf(err)
	return call.method != "" && !inDoubt(err) && !call.unsent && !final(err)
}

// final reports whether a retry is useless.
func final(err error) bool { return callOf(err).noAccess != "" || errors.Is(err, source.ErrInvalid) }

// inClear is the risk of HTTP, and of a certificate that is not verified.
const inClear = "then anything between here and the server can read the password and the token"

// withAdvice adds advice to a connection error. A server uses HTTP or HTTPS on the same port, and
// often has a self-signed certificate.
func (c *client) withAdvice(err error) error {
	var advice string
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
