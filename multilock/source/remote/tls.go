package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// TLS returns the configuration from a URL whose only parameters are tls, cafile, certfile, keyfile
// and servername. It is nil without TLS. An unknown parameter is rejected, because it could be a
// misspelt tls.
func (u URL) TLS() (*tls.Config, error) {
	values, err := url.ParseQuery(u.Query)
	if err != nil {
		return nil, u.Invalid("its parameters cannot be read")
	}
	secure := false
	for key := range values {
		switch value := values.Get(key); {
		case slices.Contains([]string{"cafile", "certfile", "keyfile", "servername"}, key):
			secure = true
		case key != "tls":
			return nil, u.Invalid(fmt.Sprintf("the parameter %q is unknown; there are tls, cafile, certfile, keyfile and servername", key))
		case value != "true" && value != "false":
			return nil, u.Invalid("write tls=true or tls=false")
		}
	}
	if secure && values.Get("tls") == "false" {
		return nil, u.Invalid("tls=false contradicts the certificates that it names")
	}
	if !secure && values.Get("tls") != "true" {
		return nil, nil //nolint:nilnil // the drivers' value for no TLS
	}
	config, err := readTLS(values)
	if err != nil {
		return nil, &source.InvalidError{What: "source", Got: u.Public, Why: err.Error(), Err: err}
	}
	return config, nil
}

func readTLS(values url.Values) (_ *tls.Config, err error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: values.Get("servername")}
	if file := values.Get("cafile"); file != "" {
		if config.RootCAs, err = Authorities(file); err != nil {
			return nil, err
		}
	}
	cert, key := values.Get("certfile"), values.Get("keyfile")
	if cert == "" && key == "" {
		return config, nil
	}
	if cert == "" || key == "" {
		return nil, errors.New("certfile and keyfile are needed together")
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read the client's certificate: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// Authorities reads the certificates of a file to verify a server.
func Authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user names it
	if err != nil {
		return nil, fmt.Errorf("read cafile: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("there is no certificate in %s", file)
	}
	return pool, nil
}

// AdviceOnTLS returns what to change in such a URL after a failed TLS handshake.
func AdviceOnTLS(secure bool, trouble string) string {
	if !secure {
		return "the server may want TLS: add ?tls=true to the URL, or cafile=FILE for a certificate of your own"
	}
	return TLSWords{
		Off: "leave tls, cafile, certfile and keyfile out of the URL", Authority: "cafile=FILE", Name: "add servername=NAME",
		Client: "certfile=FILE and keyfile=FILE", All: "tls, cafile, certfile and keyfile",
	}.Advice(trouble)
}

// SaysOfTLS reports whether a connection error is one of the TLS handshake.
func SaysOfTLS(trouble string) bool {
	return slices.ContainsFunc([]string{"tls: ", "x509: ", "handshake failed: EOF", "server preface", "server refused TLS"},
		func(part string) bool { return strings.Contains(trouble, part) })
}

// TLSWords are the names of a URL's TLS parameters in advice for users.
type TLSWords struct{ Off, Authority, Name, Client, All string }

// Advice returns what to change after a failed handshake.
func (w TLSWords) Advice(trouble string) string {
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(trouble, part) })
	}
	switch {
	case says("does not look like a TLS handshake", "handshake failed: EOF", "server refused TLS"):
		return "the server speaks no TLS: " + w.Off
	case says("unknown authority"):
		return "name the certificate of the authority that signed the server's certificate with " + w.Authority
	case says("x509: certificate is", "x509: cannot validate"):
		return "the server's certificate is for another name: call it by that, or " + w.Name
	case says("remote error", "server preface"):
		return "the server does not take this client's certificate: name one with " + w.Client + " that its authority has signed"
	}
	return "check " + w.All + " in the URL"
}
