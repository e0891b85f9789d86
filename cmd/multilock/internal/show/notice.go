package show

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// NoticeText says what the command is waiting for, "" for nothing.
type NoticeText func(ctx context.Context, waited time.Duration) string

const (
	noticeAfter = 3 * time.Second
	noticeEvery = 2 * time.Second
)

// StartNotice reports what a command is waiting for, until stop is called: after a few seconds,
// then every two seconds on a terminal's line, or ever more rarely in a log.
func StartNotice(ctx context.Context, e *console.Env, o console.Output, text NoticeText) (stop func()) {
	if o.Quiet {
		return func() {}
	}
	if console.IsTerminal(e.Stderr) && !o.JSON {
		return inBackground(ctx, func(ctx context.Context) { noticeLine(ctx, e, text) })
	}
	return inBackground(ctx, func(ctx context.Context) { notice(ctx, e, text) })
}

// inBackground runs do until stop is called, which waits for it to return.
func inBackground(ctx context.Context, do func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { do(ctx) })
	return func() { cancel(); done.Wait() }
}

// notice writes to a log, ever more rarely.
func notice(ctx context.Context, e *console.Env, text NoticeText) {
	start := time.Now()
	for pause, log := noticeAfter, time.Minute; ; pause, log = log, min(2*log, time.Hour) {
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

// resizeEvery is how soon a line adapts to a resized terminal.
const resizeEvery = 250 * time.Millisecond

// noticeLine rewrites one line of a terminal when the text changes, or the terminal's width.
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

// Obstacle is what keeps a waiter from acquiring a lock.
type Obstacle struct {
	Src  *place.Source
	Name string
	Self process.Identity // the waiter: it may find its own lock before it learns that it got it

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

// Tell names the lock's holder, or says why the lock cannot be tried.
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
		text += "; no reader comes in any more, and those who are there are waited for"
	}
	return text
}

// isOwn reports whether the lock is the waiter's own: the reply to its attempt was lost, or is
// still on its way.
func (b *Obstacle) isOwn(holder process.Identity) bool {
	return holder.PID == b.Self.PID && holder.Start == b.Self.Start && holder.Boot == b.Self.Boot && holder.Namespace == b.Self.Namespace
}

// StartWaitProgress shows a barrier's progress until stop is called: a bar on a terminal, or lines
// in a log, ever more rarely.
func StartWaitProgress(ctx context.Context, e *console.Env, o console.Output, barrier *lockgroup.Barrier) (stop func()) {
	return startProgress(ctx, e, o, func(waited time.Duration) string {
		return fmt.Sprintf("waiting, %s so far: %s", console.Short(waited), progressText(barrier.Progress()))
	}, func() amount {
		p := barrier.Progress()
		return amount{done: p.Done + p.Failed, total: p.Total, what: console.Harmless(barDetails(p))}
	})
}

// startProgress shows a bar on a terminal, and lines elsewhere.
func startProgress(ctx context.Context, e *console.Env, o console.Output, line func(time.Duration) string, read func() amount) (stop func()) {
	if o.Quiet || o.JSON || !console.IsTerminal(e.Stderr) {
		return StartNotice(ctx, e, o, func(_ context.Context, waited time.Duration) string { return line(waited) })
	}
	return inBackground(ctx, func(ctx context.Context) { meter(ctx, e, read) })
}

func progressText(p lockgroup.Progress) string {
	if p.Total == 0 {
		return barDetails(p)
	}
	return fmt.Sprintf("%d of %d done, %s", p.Done, p.Total, barDetails(p))
}

// barDetails is the text beside a bar: the holders, and how many jobs failed or died.
func barDetails(p lockgroup.Progress) string {
	text := fmt.Sprintf("%d held", len(p.Held))
	if len(p.Held) > 0 {
		first := p.Held[0]
		text += fmt.Sprintf(" (%s by %s)", console.Label(first.Name), first.Sighting.Record.Holder.Host)
	}
	return text + Some(p.Failed, "failed") + Some(p.Crashed, "died")
}

// StartBatchProgress shows the progress of all hosts until stop is called: a bar on a terminal, or
// lines in a log, ever more rarely.
func StartBatchProgress(ctx context.Context, e *console.Env, o console.Output, b *batch.Batch) (stop func()) {
	return startProgress(ctx, e, o, func(elapsed time.Duration) string { return batchText(b.Progress(), elapsed) },
		func() amount { return batchAmount(b.Progress()) })
}

func batchAmount(p batch.Progress) amount {
	return amount{done: p.Done + p.Failed, total: p.Total, before: p.Before, what: batchDetails(p)}
}

// batchText is a line for a log, with the rate and the time left.
func batchText(p batch.Progress, elapsed time.Duration) string {
	a := batchAmount(p)
	return fmt.Sprintf("%d of %d ended, %s%s", a.done, a.total, a.what, a.pace(elapsed))
}

// batchDetails is the text beside a bar.
func batchDetails(p batch.Progress) string {
	text := fmt.Sprintf("%d running here", p.Running)
	if p.Busy != "" {
		text += ", too busy for more (" + p.Busy + ")"
	}
	return text +
		Some(p.Elsewhere, "held elsewhere") + Some(p.Failed, "failed") + Some(p.TakenOver, "taken over") + Some(p.Before, "done before")
}

// amount is the progress of long work. The total is 0 if unknown.
type amount struct {
	done, total int
	before      int // done when the work began
	what        string
}

// pace is the rate since the work began, and the time left at that rate.
func (a amount) pace(elapsed time.Duration) string {
	rate := float64(a.done-a.before) / elapsed.Seconds()
	if rate <= 0 || a.done >= a.total {
		return ""
	}
	left := time.Duration(float64(a.total-a.done) / rate * float64(time.Second))
	return fmt.Sprintf(", %.3g jobs/s, %s left", rate, console.Short(left))
}

// Pace is the rate at which jobs have ended since before, and the time left at that rate; "" if
// none has ended.
func Pace(ended, before, total int, elapsed time.Duration) string {
	return strings.TrimPrefix(amount{done: ended, before: before, total: total}.pace(elapsed), ", ")
}

const (
	meterAfter = time.Second
	meterEvery = 250 * time.Millisecond
)

// meter shows a changing amount. Short work shows nothing.
func meter(ctx context.Context, e *console.Env, read func() amount) {
	start := time.Now()
	select {
	case <-ctx.Done():
		return
	case <-time.After(meterAfter):
	}
	defer e.Tell(clearLine)
	ticks := time.NewTicker(meterEvery)
	defer ticks.Stop()
	for turn := 0; ; turn++ {
		e.Show(clearLine + read().line(turn, time.Since(start), Columns(e.Stderr)))
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// clearLine erases the line of a terminal (ECMA-48, EL).
const clearLine = "\r\x1b[K"

const (
	gaugeWidth = 24
	// gaugeMinColumns is the width that a terminal needs for the bar, which only repeats the numbers.
	gaugeMinColumns = 60
)

// line formats the amount for one line of a terminal. The last column stays free, as in lineIn.
func (a amount) line(turn int, elapsed time.Duration, columns int) string {
	var begin string
	switch {
	case a.total <= 0:
		begin = string(`|/-\`[turn%4]) // a spinner
	case columns >= gaugeMinColumns:
		begin = fmt.Sprintf("[%s] (%d/%d)", a.gauge(), a.done, a.total)
	default:
		begin = fmt.Sprintf("(%d/%d)", a.done, a.total)
	}
	return Fitting(begin+" "+a.what+a.pace(elapsed), columns-1)
}

// gauge is the bar, in ASCII for every terminal.
func (a amount) gauge() string {
	full := min(max(gaugeWidth*a.done/a.total, 0), gaugeWidth)
	return strings.Repeat("#", full) + strings.Repeat(".", gaugeWidth-full)
}
