package cloudshell

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// client makes calls of the automation API. It is safe for concurrent use.
type client struct {
	opt     Options
	http    *http.Client
	machine string // how this client names itself

	logon sync.Mutex // one at a time
	token Secret     // of the session, none before the first logon; guarded by logon
}

func newClient(opt Options) (*client, error) {
	transport, err := newTransport(opt)
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(opt.Server) // check has made it so
	return &client{
		opt: opt, machine: opt.Self.Host + ":" + port,
		http: &http.Client{Transport: transport, CheckRedirect: refuseRedirect},
	}, nil
}

// refuseRedirect keeps a session's token from going anywhere else.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// newTransport is one that no proxy of the environment is part of: it would get the password.
func newTransport(opt Options) (http.RoundTripper, error) {
	if opt.Transport != nil {
		return opt.Transport, nil
	}
	proxy, err := opt.proxy()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy, transport.MaxResponseHeaderBytes = http.ProxyURL(proxy), maxHeader
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: opt.Insecure} //nolint:gosec // only where the user says so
	if opt.CAFile == "" {
		return transport, nil
	}
	text, err := os.ReadFile(opt.CAFile)
	if err != nil {
		return nil, opError("read the CA file", "", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, invalid("CA file", opt.CAFile, "has no certificate in it; it must be in PEM")
	}
	transport.TLSClientConfig.RootCAs = pool
	return transport, nil
}

// maxHeader bounds the header of an answer, in bytes. Nothing in it is used.
const maxHeader = 64 << 10

// call makes a call under the session. A token that is not accepted any more is
// replaced once, and the call, which was not carried out, repeated once.
func (c *client) call(ctx context.Context, method string, parameters ...string) (*response, error) {
	token, err := c.session(ctx, Secret{})
	if err != nil {
		return nil, err
	}
	r, err := c.post(ctx, token, method, parameters)
	if !refusesToken(err) {
		return r, err
	}
	if token, err = c.session(ctx, token); err != nil {
		return nil, err
	}
	r, err = c.post(ctx, token, method, parameters)
	if refusesToken(err) {
		return nil, &accessError{err, c.accessHint()}
	}
	return r, err
}

// session is the token of the present session. Refused is one that the server did
// not accept: then there is a new one, unless somebody else has made it already.
func (c *client) session(ctx context.Context, refused Secret) (Secret, error) {
	c.logon.Lock()
	defer c.logon.Unlock()
	if !c.token.IsZero() && c.token != refused {
		return c.token, nil
	}
	method, parameters := "Logon", []string{leaf("username", c.opt.User), leaf("password", c.opt.Password.reveal())}
	if !c.opt.Token.IsZero() {
		method, parameters = "SecureLogon", []string{leaf("token", c.opt.Token.reveal())}
	}
	r, err := c.post(ctx, Secret{}, method, append(parameters, leaf("domainName", c.opt.Domain)))
	if err != nil {
		return Secret{}, c.logonError(err)
	}
	if len(r.Info) != 1 || len(r.Info[0].Token) != 1 || r.Info[0].Token[0].Token == "" {
		return Secret{}, &CallError{Method: method, Status: http.StatusOK, Err: errors.New("the answer has no token")}
	}
	c.token = NewSecret(r.Info[0].Token[0].Token)
	return c.token, nil
}

// logonError tells credentials that are not accepted, which nothing here can
// mend, from a server that is away.
func (c *client) logonError(err error) error {
	var call *CallError
	if refusesToken(err) || errors.As(err, &call) && call.Code == codeGeneral {
		return &accessError{err, c.accessHint()}
	}
	if errors.As(err, &call) && !call.Unsent {
		call.Unsent = true // a logon changes nothing, and the call behind it was not made
	}
	return err
}

func (c *client) accessHint() string {
	if !c.opt.Token.IsZero() {
		return "the token ends with the command that got it; a lock cannot be used beyond that command"
	}
	return fmt.Sprintf("check the password of %s, and that the user belongs to the domain %s", c.opt.User, c.opt.Domain)
}

// post makes one request. Nothing is ever sent twice.
func (c *client) post(ctx context.Context, token Secret, method string, parameters []string) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	body, status, err := c.exchange(ctx, token, method, node(method, parameters...))
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, &CallError{Method: method, Status: status, Err: c.wantsTLS(status, body)}
	}
	r, err := decode(method, body)
	if err != nil {
		return nil, &CallError{Method: method, Status: status, Err: err}
	}
	if !r.succeeded() {
		code, _ := strconv.Atoi(strings.TrimSpace(r.Code))
		return nil, &CallError{Method: method, Status: status, Code: code, Message: c.scrub(token, strings.TrimSpace(r.Error))}
	}
	return r, nil
}

// exchange sends a request and reads the whole answer.
func (c *client) exchange(ctx context.Context, token Secret, method, text string) ([]byte, int, error) {
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	url := c.opt.Scheme + "://" + c.opt.Server + "/ResourceManagerApiService/" + method
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(text)))
	if err != nil {
		return nil, 0, &CallError{Method: method, Err: err, Unsent: true}
	}
	for key, value := range map[string]string{
		"Content-Type": "text/xml", "Accept": "*/*", "ClientTimeZoneId": "UTC", "DateTimeFormat": "MM/dd/yyyy HH:mm",
		"Authorization": "MachineName=" + c.machine + ";Token=" + token.reveal(),
	} {
		request.Header.Set(key, value)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, 0, &CallError{Method: method, Err: c.withAdvice(err), Unsent: !connected.Load()}
	}
	defer answer.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(answer.Body, c.opt.MaxResponse+1))
	if err == nil && int64(len(body)) > c.opt.MaxResponse {
		err = fmt.Errorf("the answer is larger than %d bytes", c.opt.MaxResponse)
	}
	if err != nil {
		return nil, 0, &CallError{Method: method, Status: answer.StatusCode, Err: err}
	}
	return body, answer.StatusCode, nil
}

// scrub removes secrets from what the server says.
func (c *client) scrub(token Secret, text string) string {
	return token.scrub(c.opt.Token.scrub(c.opt.Password.scrub(text)))
}

func (c *client) close() { c.http.CloseIdleConnections() }
