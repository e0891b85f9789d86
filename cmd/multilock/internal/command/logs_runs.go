package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/printed"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/vfs"
)

// capturedRun is a run whose output is stored with the locks.
type capturedRun struct {
	*printed.RunReader
	env  *Env
	src  *place.Source
	lock string
	dir  *fslock.Logs
	kept int // how many runs are stored

	ended bool // the run has ended, whether or not that was recorded
}

// openRun opens a run of a lock, nil if no run is stored. A positive number is that of the run, 0 is the last
// run, and -1 the run before it.
func openRun(e *Env, src *place.Source, lock string, number int) (*capturedRun, error) {
	store, with := src.Locks.(runStore)
	if !with {
		return nil, nil
	}
	dir, err := store.FindRuns(lock)
	if errors.Is(err, fs.ErrNotExist) || vfs.Gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	runs, err := printed.RunsIn(dir)
	run := printed.Run{}
	if err == nil && len(runs) > 0 {
		run, err = printed.Choose(runs, number)
	}
	if err != nil || len(runs) == 0 {
		_ = dir.Close() // directories have nothing to flush
		if err != nil {
			err = &console.CodedError{Code: console.ExitNotDone, Text: fmt.Sprintf("%q: %v", lock, err)}
		}
		return nil, err
	}
	leftOut := func(err error) { e.Say("warning: %v", err) }
	return &capturedRun{RunReader: printed.NewRunReader(dir, run, leftOut), env: e, src: src, lock: lock, dir: dir, kept: len(runs)}, nil
}

func (r *capturedRun) close() { _ = r.dir.Close() } // directories have nothing to flush

// read calls visit for each new frame, and sets ended. If the run's end was not recorded, but it no longer
// holds the lock, its output is truncated.
func (r *capturedRun) read(ctx context.Context, visit func(printed.Frame) error) error {
	err := r.Each(false, visit)
	if err != nil || r.End != "" || r.running(ctx) {
		r.ended = r.End != ""
		return err
	}
	r.ended = true
	return r.Each(true, visit) // output written since the first read, and a truncated frame
}

// running reports whether the run's acquisition may still hold the lock.
func (r *capturedRun) running(ctx context.Context) bool {
	seen, err := multilock.Inspect(ctx, r.src.Locks, r.lock, multilock.StalePolicy{})
	return err != nil || seen.Record.Token == r.Run.Token && (seen.State == multilock.StateHeld || seen.State == multilock.StateSuspect)
}

// showRun prints the output of a run.
func (o *logsOptions) showRun(ctx context.Context, e *Env, src *place.Source, p *framePrinter, lock string) error {
	r, err := openRun(e, src, lock, o.number.Value)
	if err != nil {
		return err
	}
	if r == nil {
		return errNotCaptured(lock) // it was removed meanwhile
	}
	defer r.close()
	if o.follow {
		return r.follow(ctx)
	}
	return r.show(ctx, p)
}

// show prints the run's output unchanged, and describes the run on the standard error.
func (r *capturedRun) show(ctx context.Context, p *framePrinter) error {
	p.reader = &r.Reader
	if err := r.read(ctx, p.print); err != nil {
		return err
	}
	r.tell()
	return nil
}

// tell describes the run, and reports whether its output is complete.
func (r *capturedRun) tell() {
	r.env.Flush()
	state, began := r.End, ""
	if r.Tries > 0 { // a full disk leaves an empty file
		began = fmt.Sprintf(" on %s, began %s", r.Host, r.Began.Began.Local().Format(time.DateTime))
	}
	switch {
	case !r.ended:
		state = "it has not ended"
	case state == "":
		state = "the output is cut: the run was killed, with its host or by a signal, or lost its lock, or its output could not be written"
	}
	if !r.env.out.Quiet {
		r.env.Say("run %d of %q%s: %s", r.Run.Number, r.lock, began, state)
	}
	if r.Dropped {
		r.env.Say("warning: the middle of the output was dropped, because it was too long (run --capture-size)")
	}
}

// follow prints past and new output until the run has ended.
func (r *capturedRun) follow(ctx context.Context) error {
	ctx, stop := interrupted(ctx)
	defer stop()
	p := newFramePrinter(r.env, &r.Reader)
	for {
		if err := r.read(ctx, p.print); err != nil || r.ended {
			r.tell()
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followPace):
		}
	}
}

// listRuns lists the last run of each lock.
func listRuns(ctx context.Context, e *Env, src *place.Source) (jobs []*loggedJob, err error) {
	store, with := src.Locks.(runStore)
	if !with {
		return nil, nil
	}
	locks, err := store.CapturedLocks()
	for _, lock := range locks {
		if ctx.Err() != nil {
			return jobs, ctx.Err()
		}
		r, failed := openRun(e, src, lock, 0)
		if failed != nil {
			e.Say("warning: the output of the runs under lock %q: %v", lock, failed)
			continue
		}
		if r == nil {
			continue
		}
		err := r.Each(false, func(printed.Frame) error { return nil })
		r.close()
		if err != nil {
			return jobs, err
		}
		jobs = append(jobs, &loggedJob{
			Name: lock, Run: r.Run.Number, Runs: r.kept, Attempts: r.Tries, Bytes: r.Size, Host: r.Host, Start: r.Began.Began.UTC(),
		})
	}
	return jobs, err
}

// markCaptured marks the jobs whose names are those of locks with captured runs.
func markCaptured(src *place.Source, jobs []shownJob) error {
	store, with := src.Locks.(runStore)
	if !with || len(jobs) == 0 {
		return nil
	}
	locks, err := store.CapturedLocks()
	captured := setOf(locks)
	for i := range jobs {
		if err == nil && captured[jobs[i].name] {
			jobs[i].captured, err = hasCaptured(src, jobs[i].name)
		}
	}
	return err
}

// hasCaptured reports whether the output of a run under a lock is stored.
func hasCaptured(src *place.Source, lock string) (bool, error) {
	store, with := src.Locks.(runStore)
	if !with {
		return false, nil
	}
	dir, err := store.FindRuns(lock)
	if errors.Is(err, fs.ErrNotExist) || vfs.Gone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close() //nolint:errcheck // a directory
	runs, err := dir.Runs()
	return len(runs) > 0, err
}

// errNotCaptured is the error of --run if no run's output is stored.
func errNotCaptured(lock string) error {
	return &console.CodedError{Code: console.ExitNotDone, Text: fmt.Sprintf("no output of runs under the lock %q is stored: run --capture stores it; \"multilock logs\" without a name lists what there is", lock)}
}
