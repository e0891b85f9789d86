package command

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

var errNoList = errors.New("the group has no list of jobs yet: batch gives it one")

// awaitList waits until the group has a list of jobs, and returns its stages.
func awaitList(ctx context.Context, src *place.Source, poll time.Duration) ([][]string, error) {
	list, ok := src.Locks.(source.ManifestStore)
	if !ok {
		return nil, console.Usagef("wait", "--list: this source keeps no list that can be read; use --members-from FILE, with the file that batch got")
	}
	pause := bounded.Pauses{Limit: poll}
	for {
		stages, err := joblist.Stages(ctx, list)
		if err != nil || len(stages) > 0 {
			return stages, err
		}
		if err := bounded.Sleep(ctx, pause.Next()); err != nil {
			return nil, errors.Join(err, errNoList)
		}
	}
}

// waitForList waits for the stages of the group's list in order, because no stage runs after a failed one. It
// also waits for jobs that are added meanwhile. If the list changes during a stage, it restarts with the
// first stage, because it may be waiting for a job that was removed.
func (o *waitOptions) waitForList(ctx context.Context, src *place.Source, wait func(ctx context.Context, members []string) (lockgroup.Report, error)) (whole lockgroup.Report, err error) {
	for jobs := 0; ; {
		unchanged, stop := o.whileListStays(ctx, src)
		stages, err := awaitList(ctx, src, cmp.Or(o.poll.Value, multilock.DefaultPoll))
		next := stageFrom(stages, jobs)
		if err != nil || len(next) == 0 {
			stop()
			return whole, err
		}
		report, err := wait(unchanged, next)
		stop()
		if err != nil && errors.Is(context.Cause(unchanged), errListChanged) {
			whole, jobs = lockgroup.Report{}, 0
			continue
		}
		report.Done += whole.Done
		report.Incomplete = append(whole.Incomplete, report.Incomplete...)
		if whole = report; err != nil {
			return whole, err
		}
		jobs += len(next)
	}
}

var errListChanged = errors.New("the group's list of jobs was changed")

// listPause is how often a waiter checks whether the list has changed, without --poll.
const listPause = time.Minute

// whileListStays returns a context that ends with errListChanged when the list is changed.
func (o *waitOptions) whileListStays(ctx context.Context, src *place.Source) (_ context.Context, stop func()) {
	grower, ok := src.Locks.(source.ManifestGrower)
	if !ok {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	grown := func(known int) bool {
		more, err := bounded.Call(ctx, func(ctx context.Context) (bool, error) { return grower.Grown(ctx, known) })
		return more && err == nil
	}
	known := 1
	for grown(known) {
		known++
	}
	go func() {
		for bounded.Sleep(ctx, cmp.Or(o.poll.Value, listPause)) == nil {
			if grown(known) {
				cancel(errListChanged)
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// stageFrom returns the remaining jobs of the first unfinished stage.
func stageFrom(stages [][]string, jobs int) []string {
	for _, stage := range stages {
		if jobs < len(stage) {
			return stage[jobs:]
		}
		jobs -= len(stage)
	}
	return nil
}
