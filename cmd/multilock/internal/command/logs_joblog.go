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
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// printJoblog prints the results of all jobs in GNU parallel's format. The number of a job
// with a result of its own is not known.
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
		left, _ := lockgroup.ParseChunkName(a)
		right, _ := lockgroup.ParseChunkName(b)
		return cmp.Compare(left.From, right.From)
	})
	if _, err := io.WriteString(e.Stdout, joblogHeader); err != nil {
		return err
	}
	for part := range slices.Chunk(names, 256) {
		texts, errs := make([]string, len(part)), make([]error, len(part))
		show.InParallel(len(part), func(i int) { texts[i], errs[i] = joblogOf(ctx, ledger, part[i]) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		if _, err := io.WriteString(e.Stdout, strings.Join(texts, "")); err != nil {
			return err
		}
	}
	return nil
}

// joblogOf are the lines of a result.
func joblogOf(ctx context.Context, ledger source.Ledger, name string) (string, error) {
	r, err := ledger.Result(ctx, name)
	if err != nil || r.Foreign != "" {
		return "", ignoreNoResult(err)
	}
	if r.Chunk == nil {
		return joblogLineOf(0, r), nil
	}
	var lines strings.Builder
	for _, one := range r.Chunk.Jobs {
		lines.WriteString(joblogLineOf(one.Number, one.Result(r)))
	}
	return lines.String(), nil
}

func ignoreNoResult(err error) error {
	if errors.Is(err, multilock.ErrNoResult) {
		return nil // forgotten meanwhile
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
	return joblogLine(seq, r.By.Host, console.Label(cmp.Or(r.Command, r.Name)), ended, 0)
}

// maxSignal is the last one of Linux.
const maxSignal = 64
