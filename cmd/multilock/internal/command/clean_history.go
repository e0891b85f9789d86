package command

import (
	"context"
	"errors"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/multilock/source"
)

// shortenReport is the output of "clean --history --json".
type shortenReport struct {
	DryRun  bool     `json:"dry_run"`
	Removed []string `json:"deleted_files"`
}

// shortenHistory removes history that is older than --keep.
func (o *cleanOptions) shortenHistory(ctx context.Context, e *Env, src *place.Source) error {
	history, ok := src.Locks.(source.Retention)
	if !ok {
		return console.Usagef("clean", "--history: this source keeps no history from which multilock could remove a part; see what it can do: %s", src.Place.Command("doctor"))
	}
	keep := o.keep.Value
	if !o.keep.Given {
		var err error
		if keep, err = place.HistoryKeep(e.Env); err != nil {
			return err
		}
	}
	if keep < 0 {
		return console.Usagef("clean", "--history: %s=0 keeps it forever; use --keep to set how much to keep", place.EnvHistoryKeep)
	}
	remove := history.Expire
	if o.dryRun {
		remove = history.Expired
	}
	removed, err := remove(ctx, keep)
	report := shortenReport{o.dryRun, append([]string{}, removed...)}
	if o.JSON {
		return errors.Join(err, e.PrintJSON(report))
	}
	return errors.Join(err, report.print(e, o))
}

func (r shortenReport) print(e *Env, o *cleanOptions) error {
	verb := "removed"
	if r.DryRun {
		verb = "would remove"
	}
	for _, name := range r.Removed {
		if err := e.Print("%s history %s\n", verb, console.Label(name)); err != nil {
			return err
		}
	}
	if o.Quiet || len(r.Removed) > 0 {
		return nil
	}
	return e.Print("no history to remove\n")
}
