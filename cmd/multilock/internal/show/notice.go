package show

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// NoticeText says what is waited for; "" if there is nothing to tell just now.
type NoticeText func(ctx context.Context, waited time.Duration) string

const (
	noticeAfter = 3 * time.Second
	noticeEvery = 2 * time.Second
)

// StartNotice tells people what a command is waiting for, until stop is called: after a few
// seconds, then every two seconds in one line of a terminal, or ever more rarely in a log.
func StartNotice(ctx context.Context, e *console.Env, o console.Output, text NoticeText) (stop func()) {
	if o.Quiet {
		return func() {}
	}
	return inBackground(ctx, func(ctx context.Context) { notice(ctx, e, text) })
}

// inBackground has something done until stop is called, which waits for its end.
func inBackground(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { do(ctx) })
	return func() { cancel(); done.Wait() }
}

func notice(ctx context.Context, e *console.Env, text NoticeText) {
	start := time.Now()
	onTerminal := console.IsTerminal(e.Stderr)
	pause, log := noticeAfter, time.Minute
	for {
		select {
		case <-ctx.Done():
			if onTerminal && pause != noticeAfter {
				e.Tell(clearLine)
			}
			return
		case <-time.After(pause):
		}
		if now := text(ctx, time.Since(start)); now != "" {
			tell(e, now, onTerminal)
		}
		pause = noticeEvery
		if !onTerminal {
			pause, log = log, min(2*log, time.Hour)
		}
	}
}

func tell(e *console.Env, text string, onTerminal bool) {
	if onTerminal {
		e.Show(clearLine + "multilock: " + console.Harmless(text))
		return
	}
	e.Say("%s", text)
}

// Obstacle is what is in the way of one who waits for a lock.
type Obstacle struct {
	Src  *place.Source
	Name string
	Self process.Identity // who waits: what is in place of his, he knows nothing of yet

	mu    sync.Mutex
	error error // what keeps it from being tried, the last time
	at    time.Time
}

// Met notes an error that may pass by itself.
func (b *Obstacle) Met(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.error, b.at = err, time.Now()
}

// troubleLasts is for how long an error counts as what is in the way: attempts follow
// each other more closely.
const troubleLasts = 3 * multilock.DefaultPoll

// trouble is the error that is in the way now.
func (b *Obstacle) trouble() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) > troubleLasts {
		return nil
	}
	return b.error
}

// Tell says who holds the lock, or why it cannot be tried.
func (b *Obstacle) Tell(ctx context.Context, waited time.Duration) string {
	text := fmt.Sprintf("waiting for lock %q, %s so far", b.Name, console.Short(waited))
	if err := b.trouble(); err != nil {
		return fmt.Sprintf("%s, and for this to pass: %v", text, err)
	}
	seen, err := multilock.Inspect(ctx, b.Src.Locks, b.Name, multilock.Patience{})
	if err != nil {
		return ""
	}
	if seen.State != multilock.StateFree && !b.isOwn(seen.Record.Holder.Identity) {
		text += "; it is " + console.HeldBy(seen)
	}
	return text
}

// isOwn says whether a lock is the waiter's own: the reply to his attempt was lost, or is
// under way.
func (b *Obstacle) isOwn(holder process.Identity) bool {
	return holder.PID == b.Self.PID && holder.Start == b.Self.Start && holder.Boot == b.Self.Boot && holder.Namespace == b.Self.Namespace
}
