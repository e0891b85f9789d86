package command

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/fslock"
)

// runStore is a source that can store the output of runs.
type runStore interface {
	OpenRuns(lock string) (*fslock.Logs, error)
	FindRuns(lock string) (*fslock.Logs, error)
	CapturedLocks() ([]string, error)
	DropRuns(lock string) error
}

// groupCapturing are the options of "run" that capture the output with the locks.
type groupCapturing struct {
	asked  *bool // nil without --capture
	keep   console.Number
	size   console.Size
	limits printed.Limits // 0 if nothing is captured
}

// read decides whether to capture. A configured default does not apply to a terminal, which the job may need.
func (g *groupCapturing) read(p *place.Place, e *console.Env) error {
	on := p.Capture.On && !console.IsTerminal(e.Stdout) && !console.IsTerminal(e.Stderr)
	if g.asked != nil {
		on = *g.asked
	}
	if err := (place.Capture{Keep: g.keep.Value, Size: g.size}).Check(); err != nil {
		return console.Usagef("run", "--capture-size: %w", err)
	}
	if on {
		size := cmp.Or(g.size, p.Capture.Size, place.UsualCapture.Size)
		g.limits = printed.Limits{Runs: cmp.Or(g.keep.Value, p.Capture.Keep, place.UsualCapture.Keep), Size: int64(size)} //nolint:gosec // Set limits it
	}
	return nil
}

// check rejects --capture if the source cannot store output. A configured default is ignored there.
func (g *groupCapturing) check(src *place.Source) error {
	if _, with := src.Locks.(runStore); !with && g.asked != nil && *g.asked {
		return console.Usagef("run", "--capture: this source has no place for what jobs print; use --log FILE")
	}
	return nil
}

// captureIn makes the log of a run, without writing anything yet. A lock without a fencing token, such as a
// reader's, gets no log.
func (k *capturedOutput) captureIn(opt groupCapturing, f facts, src *place.Source) {
	if store, with := src.Locks.(runStore); with && opt.limits.Runs > 0 && f.fence > 0 {
		k.group = printed.NewRunLog(store.OpenRuns, src.Self.Host, f.lockName(), f.lock.Record().Token, f.fence, opt.limits)
	}
}

// beginAttempt begins an attempt in the log of --capture, unless earlier output is still being written.
func (k *capturedOutput) beginAttempt(attempt int) {
	k.mu.Lock()
	over := k.over
	k.mu.Unlock()
	if k.group == nil || over != nil {
		return
	}
	k.uncaptured(k.inTime(func() error {
		return k.group.BeginAttempt(printed.Head{Attempt: max(attempt, 1), Began: time.Now()})
	}))
	for i, s := range k.streams {
		stream := printed.Out
		if i > 0 {
			stream = printed.Err
		}
		s.group = k.group.Attempt(stream)
	}
}

// endGroup records how the run ended, while the lock is held.
func (k *capturedOutput) endGroup(how string) {
	if k.group == nil {
		return
	}
	k.mu.Lock()
	if no := cmp.Or(k.over, k.groupLost); no != nil {
		how += "; the output is not complete: " + no.Error()
	}
	k.mu.Unlock()
	k.uncaptured(k.inTime(func() error { return k.group.End(how) }))
}

// uncaptured records why the output in the group's directory is incomplete.
func (k *capturedOutput) uncaptured(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.groupLost = cmp.Or(k.groupLost, err)
}

// inTime limits the wait for a file server, because the lock is held meanwhile.
func (k *capturedOutput) inTime(do func() error) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), outputTimeout, fmt.Errorf("the file server did not answer within %s", console.Short(outputTimeout)))
	defer cancel()
	_, err := bounded.Call(ctx, func(context.Context) (any, error) { return nil, do() })
	return err
}

// capturedWords describes the end of a run for "logs".
func (end ending) capturedWords() string {
	text := fmt.Sprintf("exit %d", console.ExitCode(end.err))
	if why := console.Line(show.Explain(end.err)); why != "" {
		text += ": " + why
	}
	return text
}
