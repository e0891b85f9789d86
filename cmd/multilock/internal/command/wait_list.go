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

// waitForList waits for the stages of the group's list in turn, because no stage runs after a
// failed one. It also waits for jobs that are added meanwhile.
func (o *waitOptions) waitForList(ctx context.Context, src *place.Source, wait func(members []string) (lockgroup.Report, error)) (whole lockgroup.Report, err error) {
	for jobs := 0; ; {
		stages, err := awaitList(ctx, src, cmp.Or(o.poll.Value, multilock.DefaultPoll))
		if err != nil {
			return whole, err
		}
		next := stageFrom(stages, jobs)
		if len(next) == 0 {
			return whole, nil
		}
		report, err := wait(next)
		report.Done += whole.Done
		report.Incomplete = append(whole.Incomplete, report.Incomplete...)
		if whole = report; err != nil {
			return whole, err
		}
		jobs += len(next)
	}
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
