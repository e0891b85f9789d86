package cloudshell

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/multilock/go/multilock/source/remote"
)

// client makes calls of the automation API. It is safe for concurrent use.
type client struct {
	opt   Options
	http  *http.Client
	logon sync.Mutex // one at a time
	token Secret     // of the session, none before the first logon; guarded by logon
}

func newClient(opt Options) (*client, error) {
	c := &client{opt: opt, http: &http.Client{
		Transport:     opt.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the target would receive the token
	}}
	if opt.Transport != nil {
		return c, nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil                                                     // a proxy from the environment would receive the password
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: opt.Insecure} //nolint:gosec // only at the user's request
	c.http.Transport = transport
	if opt.CAFile != "" {
		pool, err := remote.Authorities(opt.CAFile)
		if err != nil {
			return nil, invalid("CA file", opt.CAFile, err.Error())
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return c, nil
}

// call makes a call with the session's token. If the server rejects the token, it is replaced once
// and the call, which was not carried out, is repeated once.
func (c *client) call(ctx context.Context, method string, parameters ...string) (*response, error) {
	var refused Secret
	for {
		token, err := c.session(ctx, refused)
		if err != nil {
			return nil, err
		}
		r, err := c.post(ctx, token, method, parameters)
		switch {
		case !refusesToken(err):
			return r, err
		case !refused.IsZero():
			return nil, c.noAccess(err)
		}
		refused = token
	}
}

// session returns the token of the current session. If the server has rejected that token, it logs
// on again.
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
	switch {
	case refusesToken(err), callOf(err).code == codeGeneral:
		return Secret{}, c.noAccess(err)
	case err != nil:
		callOf(err).unsent = true // a logon changes nothing, and the actual call was not made
		return Secret{}, err
	case r.Info.Token.Token == "":
		return Secret{}, senseless(method, "the answer has no token")
	}
	c.token = NewSecret(r.Info.Token.Token)
	return c.token, nil
}

// noAccess marks an error of rejected credentials. Retries are useless.
func (c *client) noAccess(err error) error {
	hint := fmt.Sprintf("check the password of %s, and that the user belongs to the domain %s", c.opt.User, c.opt.Domain)
	if !c.opt.Token.IsZero() {
		hint = "the token ends with the command that got it, and a lock cannot be used beyond that command"
	}
	callOf(err).noAccess = hint
	return err
}

// post makes one request. It never repeats a request.
func (c *client) post(ctx context.Context, token Secret, method string, parameters []string) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	url := c.opt.Scheme + "://" + c.opt.Server + "/ResourceManagerApiService/" + method
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(node(method, parameters...))))
	if err != nil {
		return nil, &callError{method: method, err: err, unsent: true}
	}
	for key, value := range map[string]string{
		"Content-Type": "text/xml", "Accept": "*/*", "ClientTimeZoneId": "UTC", "DateTimeFormat": "MM/dd/yyyy HH:mm",
		"Authorization": "MachineName=" + c.opt.Self.Host + ";Token=" + token.reveal(),
	} {
		request.Header.Set(key, value)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, &callError{method: method, err: c.withAdvice(err), unsent: !connected.Load()}
	}
	defer answer.Body.Close()                                    //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(answer.Body, 32<<20)) // a longer one is truncated, and rejected
	if err == nil && answer.StatusCode == http.StatusBadRequest && c.opt.Scheme == schemeHTTP && bytes.Contains(body, []byte("HTTPS")) {
		err = errors.New("the server speaks HTTPS there; leave scheme=http out of the URL")
	}
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, &callError{method: method, status: answer.StatusCode, err: err}
	}
	r, err := decode(method, body)
	if err != nil {
		return nil, senseless(method, err.Error())
	}
	if !strings.EqualFold(r.Success, "true") && r.Success != "1" {
		code, _ := strconv.Atoi(strings.TrimSpace(r.Code))
		message := strings.TrimSpace(r.Error)
		for _, secret := range []Secret{token, c.opt.Token, c.opt.Password} {
			message = secret.scrub(message)
		}
		return nil, &callError{method: method, status: answer.StatusCode, code: code, message: message}
	}
	return r, nil
}
