package show

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/estimate"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/lockgroup/batch"
)

// StartWaitProgress shows a barrier's progress until stop is called: a bar on a terminal, or lines in a log
// at increasing intervals.
func StartWaitProgress(ctx context.Context, e *console.Env, o console.Output, barrier *lockgroup.Barrier) (stop func()) {
	return startProgress(ctx, e, o, time.Hour, func(waited time.Duration) string {
		return fmt.Sprintf("waiting, %s so far: %s", console.Short(waited), waitText(barrier.Progress()))
	}, func(time.Duration) amount {
		p := barrier.Progress()
		return amount{done: p.Done + p.Failed, total: p.Total, core: []string{waitDetails(p)}}
	})
}

// waitText formats the progress for a log.
func waitText(p lockgroup.Progress) string {
	if p.Total == 0 {
		return waitDetails(p)
	}
	return fmt.Sprintf("%d of %d done, %s", p.Done, p.Total, waitDetails(p))
}

// waitDetails names the holders, and how many jobs failed or died.
func waitDetails(p lockgroup.Progress) string {
	text := fmt.Sprintf("%d held", len(p.Held))
	if len(p.Held) > 0 {
		first := p.Held[0]
		text += fmt.Sprintf(" (%s by %s)", console.Label(first.Name), first.Observation.Record.Holder.Host)
	}
	return console.Harmless(text + Some(p.Failed, "failed") + Some(p.Crashed, "died"))
}

// StartBatchProgress shows the progress of all hosts until stop is called: a bar on a terminal, or one line
// per minute in a log.
func StartBatchProgress(ctx context.Context, e *console.Env, o console.Output, b *batch.Batch) (stop func()) {
	return startProgress(ctx, e, o, time.Minute, func(elapsed time.Duration) string {
		a := batchAmount(b, elapsed)
		return fmt.Sprintf("%d of %d ended%s", a.done, a.total, joined(", ", a.core, a.details))
	}, func(elapsed time.Duration) amount { return batchAmount(b, elapsed) })
}

func batchAmount(b *batch.Batch, elapsed time.Duration) amount {
	done, left := b.Estimate()
	return amountOf(b.Progress(), estimate.Estimate{Done: done, Left: left}, elapsed)
}

func amountOf(p batch.Progress, e estimate.Estimate, elapsed time.Duration) amount {
	a := amount{done: p.Done + p.Failed, total: p.Total}
	a.core = counts(p.Failed, "failed")
	if rate := float64(a.done-p.Before) / elapsed.Seconds(); a.done < a.total {
		a.core = append(a.core, pace(rate, e.Remaining(elapsed))...)
	}
	a.details = []string{fmt.Sprintf("%d running here", p.Running)}
	if p.Busy != "" {
		a.details[0] += ", too busy for more (" + p.Busy + ")"
	}
	a.details = append(a.details, counts(p.Elsewhere, "held elsewhere")...)
	a.details = append(a.details, counts(p.TakenOver, "taken over")...)
	a.details = append(a.details, counts(p.Before, "ended earlier")...)
	return a
}

// counts formats a count, as no parts if n is 0.
func counts(n int, words string) []string {
	if n <= 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d %s", n, words)}
}

// pace formats the rate and the remaining time, and leaves out what is unknown.
func pace(perSecond float64, left time.Duration) (parts []string) {
	if perSecond > 0 {
		parts = append(parts, Rate(perSecond))
	}
	if left > 0 {
		parts = append(parts, "about "+console.Short(left.Round(roundTo(left)))+" left")
	}
	return parts
}

// Pace formats the rate and the remaining time of a list that a live host works on, "" otherwise.
func Pace(p *survey.Progress) string {
	if p == nil || p.Left <= 0 {
		return ""
	}
	return joined("", pace(p.Rate, time.Duration(p.Left*float64(time.Second))))
}

// Gauge formats a list's progress as a line, with a bar if there is room for it.
func Gauge(p *survey.Progress, columns int) string {
	a := amount{done: p.Ended(), total: p.Jobs, core: []string{fmt.Sprintf("%d %% ended", p.Percent())}}
	if text := Pace(p); text != "" {
		a.core = append(a.core, text)
	}
	return a.line(0, columns)
}

// Rate formats a rate of jobs, in a unit that avoids small numbers.
func Rate(perSecond float64) string {
	switch {
	case perSecond >= 0.1:
		return fmt.Sprintf("%.3g jobs/s", perSecond)
	case perSecond*60 >= 0.1:
		return fmt.Sprintf("%.3g jobs/min", perSecond*60)
	}
	return fmt.Sprintf("%.3g jobs/h", perSecond*3600)
}

// roundTo returns the precision that leaves about two digits of an estimate.
func roundTo(d time.Duration) time.Duration {
	switch {
	case d < 10*time.Second:
		return time.Second / 10
	case d < 10*time.Minute:
		return time.Second
	}
	return time.Minute
}

// startProgress shows a bar on a terminal, and otherwise lines with pauses of at most longest.
func startProgress(ctx context.Context, e *console.Env, o console.Output, longest time.Duration, line func(time.Duration) string, read func(time.Duration) amount) (stop func()) {
	switch {
	case o.Quiet:
		return func() {}
	case o.JSON || !console.IsTerminal(e.Stderr):
		return inBackground(ctx, func(ctx context.Context) {
			notice(ctx, e, longest, func(_ context.Context, waited time.Duration) string { return line(waited) })
		})
	}
	return inBackground(ctx, func(ctx context.Context) { meter(ctx, e, read) })
}

const (
	meterAfter = time.Second
	meterEvery = 250 * time.Millisecond
)

// meter shows a changing amount, but nothing for short work.
func meter(ctx context.Context, e *console.Env, read func(time.Duration) amount) {
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
		e.Show(clearLine + read(time.Since(start)).line(turn, Columns(e.Stderr)))
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// clearLine erases the line of a terminal (ECMA-48, EL).
const clearLine = "\r\x1b[K"

// amount is the progress of a long operation. The total is 0 if unknown.
type amount struct {
	done, total int
	// core stays on a narrow line as long as it fits; details are dropped first, from the last one on.
	core, details []string
}

const (
	gaugeWidth, gaugeMin = 24, 8
	minCut               = 10 // minimum columns for a truncated name
)

// line formats the amount for one line of a terminal. The last column stays free, as in lineIn. On a narrow
// terminal the bar shrinks first, because it only repeats the numbers. After that, details are dropped.
func (a amount) line(turn, columns int) string {
	room := max(columns-1, 1)
	begin := string(`|/-\`[turn%4]) // a spinner
	if a.total > 0 {
		begin = fmt.Sprintf("(%d/%d)", a.done, a.total)
	}
	all := begin + joined(" ", a.core, a.details)
	if free := room - widthOf(all) - len("[] "); a.total > 0 && free >= gaugeMin {
		return fmt.Sprintf("[%s] %s", a.gauge(min(free, gaugeWidth)), all)
	}
	parts := append(append([]string{}, a.core...), a.details...)
	for len(parts) > 1 && widthOf(begin+joined(" ", parts)) > room {
		parts = parts[:len(parts)-1]
	}
	if room-widthOf(begin) < minCut {
		parts = nil
	}
	return cut(begin+joined(" ", parts), room)
}

// joined joins parts with commas, after a separator.
func joined(behind string, parts ...[]string) string {
	var all []string
	for _, p := range parts {
		all = append(all, p...)
	}
	if len(all) == 0 {
		return ""
	}
	return behind + strings.Join(all, ", ")
}

// gauge is the bar, in ASCII for every terminal.
func (a amount) gauge(width int) string {
	full := min(max(width*a.done/a.total, 0), width)
	return strings.Repeat("#", full) + strings.Repeat(".", width-full)
}
