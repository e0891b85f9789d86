// Package ping tells a watcher on the web (healthchecks.io, or one that understands the same
// requests) that a job began, and how it ended. A program that is built with the tag no_ping
// is without it, and without HTTP.
package ping

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// End is how a job ended.
type End struct {
	// OK says that all is well; Code is the job's own exit code if it failed by itself, and
	// 0 if something else went wrong.
	OK   bool
	Code int
	// Body is what the watcher is to keep of it.
	Body []byte
}

// path is what is added to the URL.
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

// parse reads a URL. Its errors do not show it: whoever knows it can ping in our name.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errURL
	}
	u.Fragment = ""
	return u, nil
}

// address is where a ping goes, with the number of the run, by which the watcher finds its
// beginning and its end.
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
