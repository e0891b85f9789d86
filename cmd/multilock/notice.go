package main

import (
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/multilock"
)

// notice tells people what a command is waiting for: after a few seconds, then
// every two seconds in one line of a terminal, or ever more rarely in a log.
type notice struct {
	env    *env
	text   noticeText
	cancel context.CancelFunc
	done   chan struct{}
}

// noticeText says what is waited for; "" if there is nothing to tell just now.
type noticeText func(ctx context.Context, waited time.Duration) string

const (
	noticeAfter = 3 * time.Second
	noticeEvery = 2 * time.Second
)

func startNotice(ctx context.Context, e *env, o common, text noticeText) *notice {
	n := &notice{env: e, text: text, done: make(chan struct{}), cancel: func() {}}
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
				n.env.tell(clearLine)
			}
			return
		case <-time.After(pause):
		}
		if text := n.text(ctx, time.Since(start)); text != "" {
			n.tell(text, onTerminal)
		}
		pause = noticeEvery
		if !onTerminal {
			pause, log = log, min(2*log, time.Hour)
		}
	}
}

func (n *notice) tell(text string, onTerminal bool) {
	if onTerminal {
		n.env.show(clearLine + "multilock: " + harmless(text))
		return
	}
	n.env.say("%s", text)
}

// waitingForLock says who holds a lock.
func waitingForLock(src *source, name string) noticeText {
	return func(ctx context.Context, waited time.Duration) string {
		seen, err := multilock.Inspect(ctx, src.locks, name, multilock.Patience{})
		if err != nil {
			return ""
		}
		text := fmt.Sprintf("waiting for lock %q, %s so far", name, short(waited))
		if seen.State != multilock.Free {
			text += "; it is " + heldBy(seen)
		}
		return text
	}
}
