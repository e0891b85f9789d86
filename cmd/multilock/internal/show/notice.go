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
	if console.IsTerminal(e.Stderr) && !o.JSON {
		return inBackground(ctx, func(ctx context.Context) { noticeLine(ctx, e, text) })
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

// notice tells it in a log, ever more rarely.
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

// resizeEvery is how soon a line follows the width of its terminal.
const resizeEvery = 250 * time.Millisecond

// noticeLine shows it in one line of a terminal, which is written anew when there is something
// else to tell, or when the terminal has another width.
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

// lineIn is as much of a text as stands in one line of a terminal. The last column stays
// free: a line that fills it would go on in the next one, where it cannot be removed.
func lineIn(text string, columns int) string { return cut(text, max(columns-1, 1)) }

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

// isOwn says whether a lock is the waiter's own: the reply to his attempt was lost, or is
// under way.
func (b *Obstacle) isOwn(holder process.Identity) bool {
	return holder.PID == b.Self.PID && holder.Start == b.Self.Start && holder.Boot == b.Self.Boot && holder.Namespace == b.Self.Namespace
}

// StartWaitProgress shows a barrier's progress, until stop is called: a bar on a terminal; in a log, a
// line after a few seconds and then ever more rarely.
func StartWaitProgress(ctx context.Context, e *console.Env, o console.Output, barrier *lockgroup.Barrier) (stop func()) {
	return startProgress(ctx, e, o, func(waited time.Duration) string {
		return fmt.Sprintf("waiting, %s so far: %s", console.Short(waited), progressText(barrier.Progress()))
	}, func() amount {
		p := barrier.Progress()
		return amount{done: p.Done + p.Failed, total: p.Total, what: console.Harmless(trouble(p))}
	})
}

// startProgress shows an amount on a terminal, and a line elsewhere.
func startProgress(ctx context.Context, e *console.Env, o console.Output, line func(time.Duration) string, read func() amount) (stop func()) {
	if o.Quiet || o.JSON || !console.IsTerminal(e.Stderr) {
		return StartNotice(ctx, e, o, func(_ context.Context, waited time.Duration) string { return line(waited) })
	}
	return inBackground(ctx, func(ctx context.Context) { meter(ctx, e, read) })
}

func progressText(p lockgroup.Progress) string {
	if p.Total == 0 {
		return trouble(p)
	}
	return fmt.Sprintf("%d of %d done, %s", p.Done, p.Total, trouble(p))
}

// trouble is what there is to tell beside the numbers of a bar: who is at work,
// and who will not be any more.
func trouble(p lockgroup.Progress) string {
	text := fmt.Sprintf("%d held", len(p.Held))
	if len(p.Held) > 0 {
		first := p.Held[0]
		text += fmt.Sprintf(" (%s by %s)", console.Label(first.Name), first.Sighting.Record.Holder.Host)
	}
	return text + Some(p.Failed, "failed") + Some(p.Crashed, "died")
}

// StartBatchProgress shows how far all hosts have come, until stop is called: a bar on a terminal; in a
// log, a line after a few seconds and then ever more rarely.
func StartBatchProgress(ctx context.Context, e *console.Env, o console.Output, b *batch.Batch) (stop func()) {
	return startProgress(ctx, e, o, func(elapsed time.Duration) string { return batchText(b.Progress(), elapsed) },
		func() amount { return batchAmount(b.Progress()) })
}

func batchAmount(p batch.Progress) amount {
	return amount{done: p.Done + p.Failed, total: p.Total, before: p.Before, what: batchTrouble(p)}
}

// batchText is the line of a log, with the rate and the time that is left.
func batchText(p batch.Progress, elapsed time.Duration) string {
	a := batchAmount(p)
	return fmt.Sprintf("%d of %d ended, %s%s", a.done, a.total, a.what, a.pace(elapsed))
}

// batchTrouble is what there is to tell beside the numbers of a bar.
func batchTrouble(p batch.Progress) string {
	text := fmt.Sprintf("%d running here", p.Running)
	if p.Busy != "" {
		text += ", too busy for more (" + p.Busy + ")"
	}
	return text +
		Some(p.Elsewhere, "held elsewhere") + Some(p.Failed, "failed") + Some(p.TakenOver, "taken over") + Some(p.Before, "done before")
}

// amount is how much of long work is done. The total is 0 if it is not known.
type amount struct {
	done, total int
	before      int // of done, when the work began
	what        string
}

// pace is the rate since the work began, and the time that is left at that rate.
func (a amount) pace(elapsed time.Duration) string {
	rate := float64(a.done-a.before) / elapsed.Seconds()
	if rate <= 0 || a.done >= a.total {
		return ""
	}
	left := time.Duration(float64(a.total-a.done) / rate * float64(time.Second))
	return fmt.Sprintf(", %.3g jobs/s, %s left", rate, console.Short(left))
}

// Pace is the rate at which jobs have ended since there were so many, and the time that is left
// at that rate; "" if none has.
func Pace(ended, before, total int, elapsed time.Duration) string {
	return strings.TrimPrefix(amount{done: ended, before: before, total: total}.pace(elapsed), ", ")
}

const (
	meterAfter = time.Second
	meterEvery = 250 * time.Millisecond
)

// meter shows an amount as it changes, but nothing of what is over soon.
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

// clearLine empties the line of a terminal (ECMA-48, EL), to be written anew.
const clearLine = "\r\x1b[K"

const (
	gaugeWidth = 24
	// gaugeFrom is how wide a terminal must be for the bar, which says no more than
	// the numbers beside it.
	gaugeFrom = 60
)

// line shows the amount in one line of a terminal. A line that fills the last
// column would be continued in the next one, where it cannot be removed.
func (a amount) line(turn int, elapsed time.Duration, columns int) string {
	var begin string
	switch {
	case a.total <= 0:
		begin = string(`|/-\`[turn%4]) // a mere sign of life
	case columns >= gaugeFrom:
		begin = fmt.Sprintf("[%s] (%d/%d)", a.gauge(), a.done, a.total)
	default:
		begin = fmt.Sprintf("(%d/%d)", a.done, a.total)
	}
	return Fitting(begin+" "+a.what+a.pace(elapsed), columns-1)
}

// gauge is the bar. It is plain ASCII, which every terminal can show.
func (a amount) gauge() string {
	full := min(max(gaugeWidth*a.done/a.total, 0), gaugeWidth)
	return strings.Repeat("#", full) + strings.Repeat(".", gaugeWidth-full)
}
