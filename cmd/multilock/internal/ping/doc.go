// Package ping notifies a monitoring service (healthchecks.io, or one with the same API) that a job has
// started, and how it ended. The build tag no_ping leaves it out, together with HTTP.
package ping

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// End describes how a job ended.
type End struct {
	// OK means success. Code is the job's exit code if the job itself failed, and 0 after any other failure.
	OK   bool
	Code int
	// Body is what the service stores with the ping.
	Body []byte
}

// path returns what is appended to the URL.
func (e End) path() string {
	switch {
	case e.OK:
		return ""
	case e.Code > 0:
		return strconv.Itoa(e.Code)
	}
	return "fail"
}

var errURL = errors.New("write the whole URL, such as https://hc-ping.com/UUID")

// parse parses a URL. Its errors do not contain the URL, because it is the secret that authorizes pings.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errURL
	}
	u.Fragment = ""
	return u, nil
}

// address returns the URL of a ping, with the ID of the run, by which the service matches the start and the
// end.
func address(u *url.URL, path, run string) string {
	to := *u
	to.Path = strings.TrimSuffix(to.Path, "/")
	if path != "" {
		to.Path += "/" + path
	}
	to.RawPath = ""
	values := to.Query()
	values.Set("rid", run)
	to.RawQuery = values.Encode()
	return to.String()
}
