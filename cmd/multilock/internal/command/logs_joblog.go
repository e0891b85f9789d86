package command

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// printJoblog prints all results in GNU parallel's format. Jobs with their own results have the
// number 0, because theirs is unknown.
func printJoblog(ctx context.Context, e *Env, src *place.Source) error {
	ledger, err := place.Ability[source.Ledger](src, "logs --joblog", source.TraitResults)
	if err != nil {
		return err
	}
	names, err := ledger.Results(ctx)
	if err != nil {
		return err
	}
	slices.SortStableFunc(names, func(a, b string) int {
		left, _ := joblist.ParseChunkName(a)
		right, _ := joblist.ParseChunkName(b)
		return cmp.Compare(left.From, right.From)
	})
	if _, err := io.WriteString(e.Stdout, joblogHeader); err != nil {
		return err
	}
	for part := range slices.Chunk(names, joblogPart) {
		text, err := joblogOf(ctx, ledger, part)
		if err == nil {
			_, err = io.WriteString(e.Stdout, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// joblogPart is how many results are read at a time. The group's list is read once for each part.
const joblogPart = 2048

// joblogOf formats results as lines.
func joblogOf(ctx context.Context, ledger source.Ledger, names []string) (string, error) {
	results := make([]multilock.Result, len(names))
	err := parallel.Do(parallel.Requests, len(names), func(i int) (err error) {
		results[i], err = ledger.Result(ctx, names[i])
		return ignoreNoResult(err)
	})
	commands := survey.Commands{}
	for _, r := range results {
		commands.Want(r.Chunk)
	}
	commands.Read(ctx, ledger)
	var lines strings.Builder
	for _, r := range results {
		switch {
		case r.Foreign != "" || r.Name == "":
		case r.Chunk == nil:
			lines.WriteString(joblogLineOf(0, r))
		default:
			for _, one := range r.Chunk.Jobs {
				lines.WriteString(joblogLineOf(one.Number, one.Result(r)))
			}
		}
	}
	return lines.String(), err
}

func ignoreNoResult(err error) error {
	if errors.Is(err, multilock.ErrNoResult) {
		return nil // deleted meanwhile
	}
	return err
}

func joblogLineOf(seq int, r multilock.Result) string {
	ended := job.Result{Code: r.Exit, Started: r.Start, Elapsed: r.Duration}
	for s := syscall.Signal(1); r.Signal != "" && s <= maxSignal; s++ {
		if s.String() == r.Signal {
			ended.Signal = s
		}
	}
	return joblogLine(seq, r.By.Host, console.Harmless(cmp.Or(r.Command, r.Name)), ended, 0)
}

// maxSignal is the last signal of Linux.
const maxSignal = 64
