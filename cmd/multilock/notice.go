package main

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
)

// notice tells people whom a command is waiting for: after a few seconds, then
// every two seconds in one line of a terminal, or ever more rarely in a log.
type notice struct {
	env    *env
	src    source
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

const (
	noticeAfter = 3 * time.Second
	noticeEvery = 2 * time.Second
)

func startNotice(ctx context.Context, e *env, src source, name string, o common) *notice {
	n := &notice{env: e, src: src, name: name, done: make(chan struct{}), cancel: func() {}}
	if o.quiet {
		close(n.done)
		return n
	}
	ctx, n.cancel = context.WithCancel(ctx)
	go n.run(ctx)
	return n
}

func (n *notice) stop() {
	n.cancel()
	<-n.done
}

func (n *notice) run(ctx context.Context) {
	defer close(n.done)
	start := time.Now()
	onTerminal := isTerminal(n.env.stderr)
	pause, log := noticeAfter, time.Minute
	for {
		select {
		case <-ctx.Done():
			if onTerminal && pause != noticeAfter {
				_, _ = fmt.Fprint(n.env.stderr, "\r\x1b[K")
			}
			return
		case <-time.After(pause):
		}
		seen, err := multilock.Inspect(ctx, n.src, n.name, multilock.Patience{})
		if err == nil {
			n.tell(seen, time.Since(start), onTerminal)
		}
		pause = noticeEvery
		if !onTerminal {
			pause, log = log, min(2*log, time.Hour)
		}
	}
}

func (n *notice) tell(seen multilock.Sighting, waited time.Duration, onTerminal bool) {
	text := fmt.Sprintf("waiting for lock %q, %s so far", n.name, short(waited))
	if seen.State != multilock.Free {
		text += "; it is " + heldBy(seen)
	}
	if onTerminal {
		_, _ = fmt.Fprintf(n.env.stderr, "\r\x1b[Kmultilock: %s", harmless(text))
		return
	}
	n.env.say("%s", text)
}
