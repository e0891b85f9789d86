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
	// attemptLimit bounds one attempt, so that there is time for another.
	attemptLimit = 10 * time.Second
	firstPause   = 500 * time.Millisecond
	longestPause = 5 * time.Second
	// mostAttempts exceeds the number of attempts within any reasonable timeout.
	mostAttempts = 1000
	// mostRedirects exceeds what a service needs.
	mostRedirects = 10
	// maxAnswer bounds how much of a response is read, so that its connection can be reused.
	maxAnswer = 4 << 10
)

// Check sends the pings of one run to the check of a job.
type Check struct {
	url    *url.URL
	run    string
	client *retryablehttp.Client
	last   error // of the last attempt

	stop    context.CancelFunc // cancels the first ping
	started chan struct{}      // closed when the first ping has ended; nil if there was none
}

// New returns a Check for the URL of a monitoring service.
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
	client.Logger = nil // it would log the URL
	client.HTTPClient.Timeout = attemptLimit
	client.HTTPClient.CheckRedirect = stay
	client.RetryWaitMin, client.RetryWaitMax, client.RetryMax = firstPause, longestPause, mostAttempts
	c := &Check{url: u, run: run.String(), client: client}
	client.CheckRetry = func(ctx context.Context, answer *http.Response, err error) (bool, error) {
		if ctx.Err() == nil { // otherwise the context's error has the reason
			c.last = failure(answer, err)
		}
		if errors.Is(err, errElsewhere) {
			return false, err
		}
		return retryablehttp.DefaultRetryPolicy(ctx, answer, err)
	}
	return c, nil
}

// errElsewhere means that a redirect was not followed.
var errElsewhere = errors.New("the server redirects to another host; give the address that it redirects to")

// stay follows redirects only within the same host: another host must receive neither the job's output nor
// the URL, which is a secret.
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

// Start reports in the background that the job starts, without waiting. It retries until ctx or the job ends.
// A failure is not reported: if the service stays unreachable, End reports that.
func (c *Check) Start(ctx context.Context) {
	if c.started != nil {
		return // the run was started before, and starts again
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.started = make(chan struct{})
	go func() {
		defer close(c.started)
		_ = c.send(ctx, "start", nil)
	}()
}

// End reports how the job ended, and retries until ctx ends. Its error contains only the server's name.
func (c *Check) End(ctx context.Context, e End) error {
	if c.started != nil {
		c.stop()
		<-c.started // a late start would count as the start of another run
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

// failure returns the error of a request that got no response, or an unsuccessful one.
func failure(answer *http.Response, err error) error {
	switch {
	case err != nil:
		return cause(err)
	case answer.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("the server answered %s", answer.Status)
	}
	return nil
}

// cause returns an error without the URL that package http adds.
func cause(err error) error {
	var shown *url.Error
	if errors.As(err, &shown) {
		return shown.Err
	}
	return err
}
