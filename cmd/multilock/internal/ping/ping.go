//go:build !no_ping

package ping

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-retryablehttp"
)

const (
	// attemptLimit bounds one attempt, so that there is time for others.
	attemptLimit = 10 * time.Second
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
	// mostAttempts are more than fit into any time that somebody wants to wait.
	mostAttempts = 1000
	// mostRedirects are more than a watcher needs.
	mostRedirects = 10
	// maxAnswer is as much as is read of an answer, so that its connection can be used again.
	maxAnswer = 4 << 10
)

// Check is what a watcher has for a job. It is for one run of that.
type Check struct {
	url    *url.URL
	run    string
	client *retryablehttp.Client
	last   error // of one attempt

	stop    context.CancelFunc // of the first ping
	started chan struct{}      // closed when that is over; nil if there was none
}

// New is for a URL of a watcher.
func New(text string) (*Check, error) {
	u, err := parse(text)
	if err != nil {
		return nil, err
	}
	run, err := uuid.NewRandom()
	if err != nil {
		return nil, err
	}
	client := retryablehttp.NewClient()
	client.Logger = nil // it would show the URL
	client.HTTPClient.Timeout = attemptLimit
	client.HTTPClient.CheckRedirect = stay
	client.RetryWaitMin, client.RetryWaitMax, client.RetryMax = firstPause, longestPause, mostAttempts
	c := &Check{url: u, run: run.String(), client: client}
	client.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		if ctx.Err() == nil { // else it says that
			c.last = failure(answer, err)
		}
		if errors.Is(err, errElsewhere) {
			return false, err
		}
		return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
	}
	return c, nil
}

// errElsewhere says that a ping was not sent where the watcher's answer leads.
var errElsewhere = errors.New("the server redirects to another host; give the address that it redirects to")

// stay follows a redirect within the watcher's host only: another one must get neither the
// job's output nor the URL, which is the key to the check.
func stay(next *http.Request, before []*http.Request) error {
	next.Header.Del("Referer")
	first := before[0].URL
	if next.URL.Host != first.Host || next.URL.Scheme != first.Scheme && next.URL.Scheme != "https" {
		return errElsewhere
	}
	if len(before) >= mostRedirects {
		return fmt.Errorf("it redirects more than %d times", mostRedirects)
	}
	return nil
}

// Start tells in the background that the job begins: it waits for nothing. It is tried until
// ctx ends, or the job does; that it fails the end will tell, if that fails, too.
func (c *Check) Start(ctx context.Context) {
	if c.started != nil {
		return // the run has begun before, and begins again
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.started = make(chan struct{})
	go func() {
		defer close(c.started)
		_ = c.send(ctx, "start", nil)
	}()
}

// End tells how the job ended, and tries that until ctx ends. The error shows the server
// only.
func (c *Check) End(ctx context.Context, e End) error {
	if c.started != nil {
		c.stop()
		<-c.started // or it might be taken for the beginning of another run
	}
	if err := c.send(ctx, e.path(), e.Body); err != nil {
		return fmt.Errorf("%s://%s/...: %w", c.url.Scheme, c.url.Host, err)
	}
	return nil
}

func (c *Check) send(ctx context.Context, path string, body []byte) error {
	request, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, address(c.url, path, c.run), body)
	if err != nil {
		return cause(err)
	}
	request.Header.Set("User-Agent", "multilock")
	request.Header.Set("Content-Type", "text/plain; charset=utf-8")
	c.last = nil
	answer, err := c.client.Do(request)
	if err != nil {
		return errors.Join(context.Cause(ctx), c.last)
	}
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	_ = answer.Body.Close()
	return failure(answer, nil)
}

// failure is what is wrong with an answer, or with none.
func failure(answer *http.Response, err error) error {
	switch {
	case err != nil:
		return cause(err)
	case answer.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("the server says %s", answer.Status)
	}
	return nil
}

// cause is an error without the URL that package http puts before it.
func cause(err error) error {
	var shown *url.Error
	if errors.As(err, &shown) {
		return shown.Err
	}
	return err
}
