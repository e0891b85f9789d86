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
)

// A server speaks HTTP or HTTPS on the same port, and mostly has a certificate that
// nobody vouches for. What goes wrong between the two is said in words that help.

// inClear is the price of HTTP, and of a certificate that is not looked at.
const inClear = "then whoever is in between can read the password and the token"

// withAdvice says what to do about a server that cannot be talked to in this way.
func (c *client) withAdvice(err error) error {
	var name x509.HostnameError
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return fmt.Errorf("%w; have HTTPS set up there, or add scheme=http to the URL: %s", err, inClear)
	case errors.As(err, &name):
		return fmt.Errorf("%w; write the server's name as its certificate has it, or add insecure=true to the URL: %s", err, inClear)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return fmt.Errorf("%w; name the certificate that vouches for the server (a self-signed one vouches for itself) with cafile=FILE, or add insecure=true to the URL: %s", err, inClear)
	case c.opt.Scheme == schemeHTTP && brokenOff(err):
		return fmt.Errorf("%w; the server may speak HTTPS there: if so, leave scheme=http out of the URL", err)
	case c.opt.Scheme == schemeHTTPS && isTLS(err):
		return fmt.Errorf("%w; the server may speak HTTP there: if so, have HTTPS set up, or add scheme=http to the URL: %s", err, inClear)
	}
	return err
}

// brokenOff says that a server has ended the connection, or answered something else
// than HTTP: what those do that expect TLS.
func brokenOff(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "malformed HTTP")
}

// isTLS says that there was an answer to the greeting of TLS that is none.
func isTLS(err error) bool {
	return errors.As(err, new(tls.RecordHeaderError))
}

// errWantsTLS is what a server says in plain HTTP that wants HTTPS.
var errWantsTLS = errors.New("the server speaks HTTPS there; leave scheme=http out of the URL")

// wantsTLS knows the answer of servers that tell so.
func (c *client) wantsTLS(status int, body []byte) error {
	if c.opt.Scheme == schemeHTTP && status == http.StatusBadRequest && bytes.Contains(body, []byte("HTTPS")) {
		return errWantsTLS
	}
	return nil
}
