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

// NoticeText describes what the command is waiting for, "" for nothing.
type NoticeText func(ctx context.Context, waited time.Duration) string

const (
	noticeAfter = 3 * time.Second
	noticeEvery = 2 * time.Second
)

// StartNotice reports what a command is waiting for, until stop is called. The first report comes after a few
// seconds. Then a line on a terminal is updated every two seconds, or a log gets lines at increasing
// intervals.
func StartNotice(ctx context.Context, e *console.Env, o console.Output, text NoticeText) (stop func()) {
	if o.Quiet {
		return func() {}
	}
	if console.IsTerminal(e.Stderr) && !o.JSON {
		return inBackground(ctx, func(ctx context.Context) { noticeLine(ctx, e, text) })
	}
	return inBackground(ctx, func(ctx context.Context) { notice(ctx, e, time.Hour, text) })
}

// inBackground runs do until stop is called, which waits for it to return.
func inBackground(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { do(ctx) })
	return func() { cancel(); done.Wait() }
}

// notice writes to a log at increasing intervals, which longest limits.
func notice(ctx context.Context, e *console.Env, longest time.Duration, text NoticeText) {
	start := time.Now()
	for pause, log := noticeAfter, time.Minute; ; pause, log = log, min(2*log, longest) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if now := text(ctx, time.Since(start)); now != "" {
			e.Say("%s", now)
		}
	}
}

// resizeEvery is how often a line adapts to a resized terminal.
const resizeEvery = 250 * time.Millisecond

// noticeLine rewrites one line of a terminal when the text or the terminal's width changes.
func noticeLine(ctx context.Context, e *console.Env, text NoticeText) {
	start := time.Now()
	due := time.NewTimer(noticeAfter)
	defer due.Stop()
	widths := time.NewTicker(resizeEvery)
	defer widths.Stop()
	for shown, wide := "", 0; ; {
		select {
		case <-ctx.Done():
			if shown != "" {
				e.Tell(clearLine)
			}
			return
		case <-due.C:
			if now := text(ctx, time.Since(start)); now != "" {
				shown, wide = now, Columns(e.Stderr)
				e.Show(clearLine + lineIn("multilock: "+console.Line(now), wide))
			}
			due.Reset(noticeEvery)
		case <-widths.C:
			if columns := Columns(e.Stderr); shown != "" && columns != wide {
				wide = columns
				e.Show(clearLine + lineIn("multilock: "+console.Line(shown), wide))
			}
		}
	}
}

// lineIn cuts a text to one line of a terminal. The last column stays free: a line that fills it
// would wrap, and the wrapped part could not be erased.
func lineIn(text string, columns int) string { return cut(text, max(columns-1, 1)) }

// Obstacle is what prevents a waiter from acquiring a lock.
type Obstacle struct {
	Src  *place.Source
	Name string
	Self process.Identity // the waiter, which may find the lock as its own before it receives the reply

	mu    sync.Mutex
	error error // from the last attempt
	at    time.Time
}

// Met records a temporary error.
func (b *Obstacle) Met(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.error, b.at = err, time.Now()
}

// errorTTL is how long an error counts as the obstacle. Attempts are more frequent than that.
const errorTTL = 3 * multilock.DefaultPoll

// recentError returns the current error.
func (b *Obstacle) recentError() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if time.Since(b.at) > errorTTL {
		return nil
	}
	return b.error
}

// Tell describes the lock's holder, or why the lock cannot be tried.
func (b *Obstacle) Tell(ctx context.Context, waited time.Duration) string {
	text := fmt.Sprintf("waiting for lock %q, %s so far", b.Name, console.Short(waited))
	if err := b.recentError(); err != nil {
		return fmt.Sprintf("%s, and for this to pass: %v", text, err)
	}
	seen, err := multilock.Inspect(ctx, b.Src.Locks, b.Name, multilock.StalePolicy{})
	if err != nil {
		return ""
	}
	switch own := b.isOwn(seen.Record.Holder.Identity); {
	case seen.State == multilock.StateFree:
	case !own:
		text += "; it is " + console.HeldBy(seen)
	case multilock.Shareable(b.Name):
		text += "; it waits for the readers that hold it now, and no new one can acquire it"
	}
	return text
}

// isOwn reports whether the lock is the waiter's own: the reply to its attempt was lost, or is still under
// way.
func (b *Obstacle) isOwn(holder process.Identity) bool {
	return holder.PID == b.Self.PID && holder.Start == b.Self.Start && holder.Boot == b.Self.Boot && holder.Namespace == b.Self.Namespace
}
