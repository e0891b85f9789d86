package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/ping"
)

// pinging are the options of "run" that notify a monitoring service.
type pinging struct {
	url     string
	timeout console.Duration

	check *ping.Check // nil without --ping
}

// open parses the URL of --ping.
func (p *pinging) open() (err error) {
	if p.url == "" {
		return nil
	}
	if p.check, err = ping.New(p.url); err != nil {
		return console.Usagef("run", "--ping: %w", err)
	}
	return nil
}

// start reports the job's start, without waiting.
func (p *pinging) start(ctx context.Context) {
	if p.check != nil {
		p.check.Start(ctx)
	}
}

// startPing reports an ending in the background, until stop is closed.
func (end ending) startPing(say func(string, ...any), stop <-chan struct{}) (wait func()) {
	if end.ping.check == nil || end.event == eventNone {
		return func() {}
	}
	limit := end.ping.timeout.Value
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, fmt.Errorf("given up after %s, the limit of --ping-timeout", console.Short(limit)))
	over := make(chan struct{})
	go func() {
		defer close(over)
		if failed := end.ping.check.End(ctx, end.pinged()); failed != nil {
			say("warning: --ping: %s", strings.ReplaceAll(failed.Error(), "\n", ": "))
		}
	}()
	return func() {
		defer cancel()
		select {
		case <-over:
		case <-stop:
			cancel()
			<-over
		}
	}
}

// pinged returns the ping for an ending. It has the job's exit code only if that is the sole problem.
func (end ending) pinged() ping.End {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	text := host + "\n"
	if why := end.explain(); why != "" {
		text = host + ": " + why + "\n"
	}
	p := ping.End{OK: end.event == eventSuccess, Body: append([]byte(text), end.printed...)}
	var ended *console.JobError
	if code := console.ExitCode(end.err); end.event == eventFailure && errors.As(end.err, &ended) && code == ended.JobCode() && code < 256 {
		p.Code = code
	}
	return p
}
