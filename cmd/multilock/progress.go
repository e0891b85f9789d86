package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/multilock/go/lockgroup"
)

// stopper is what shows how long work comes along until it is stopped.
type stopper interface{ stop() }

// startWaitProgress shows a barrier's progress: a bar on a terminal; in a log, a
// line after a few seconds and then ever more rarely.
func startWaitProgress(ctx context.Context, e *env, o common, barrier *lockgroup.Barrier) stopper {
	if o.quiet || !isTerminal(e.stderr) {
		return startNotice(ctx, e, o, func(_ context.Context, waited time.Duration) string {
			return fmt.Sprintf("waiting, %s so far: %s", short(waited), progressText(barrier.Progress()))
		})
	}
	return startMeter(e, func() amount {
		p := barrier.Progress()
		return amount{done: p.Done + p.Failed, total: p.Total, what: harmless(trouble(p))}
	})
}

func progressText(p lockgroup.Progress) string {
	var parts []string
	if p.Total > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d done", p.Done, p.Total))
	}
	return strings.Join(append(parts, trouble(p)), ", ")
}

// trouble is what there is to tell beside the numbers of a bar: who is at work,
// and who will not be any more.
func trouble(p lockgroup.Progress) string {
	parts := []string{fmt.Sprintf("%d held", len(p.Held))}
	if len(p.Held) > 0 {
		first := p.Held[0]
		parts[0] += fmt.Sprintf(" (%s by %s)", label(first.Name), first.Sighting.Record.Holder.Host)
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	if p.Crashed > 0 {
		parts = append(parts, fmt.Sprintf("%d died", p.Crashed))
	}
	return strings.Join(parts, ", ")
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
	return fmt.Sprintf(", %.3g jobs/s, %s left", rate, short(left))
}

// meter is a progress bar that shows an amount as it changes.
type meter struct {
	end  chan struct{}
	done chan struct{}
}

const (
	meterAfter = time.Second
	meterEvery = 250 * time.Millisecond
)

func startMeter(e *env, read func() amount) *meter {
	m := &meter{end: make(chan struct{}), done: make(chan struct{})}
	go m.run(e, read)
	return m
}

func (m *meter) stop() {
	close(m.end)
	<-m.done
}

// run shows nothing of what is over soon.
func (m *meter) run(e *env, read func() amount) {
	defer close(m.done)
	start := time.Now()
	select {
	case <-m.end:
		return
	case <-time.After(meterAfter):
	}
	bar := newBar(e, read())
	defer bar.Exit()  //nolint:errcheck // the terminal may be gone
	defer bar.Clear() //nolint:errcheck // the same
	ticks := time.NewTicker(meterEvery)
	defer ticks.Stop()
	for {
		now := read()
		bar.Describe(now.what + now.pace(time.Since(start)))
		_ = bar.Set(now.done)
		_ = bar.RenderBlank()
		select {
		case <-m.end:
			return
		case <-ticks.C:
		}
	}
}

// newBar is a bar with a count; a mere sign of life if the total is not known. It
// would take the time for its own, and what was done before for done in it: see pace.
func newBar(e *env, a amount) *progressbar.ProgressBar {
	total := a.total
	if total == 0 {
		total = -1
	}
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(e.stderr), progressbar.OptionUseANSICodes(true), progressbar.OptionSetWidth(24),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false), progressbar.OptionSetElapsedTime(false),
		progressbar.OptionShowDescriptionAtLineEnd(), progressbar.OptionSetSpinnerChangeInterval(0), progressbar.OptionSpinnerType(14),
		progressbar.OptionClearOnFinish(),
	)
}
