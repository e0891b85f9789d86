package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// neverUsed returns a text if nothing was ever held or recorded in the group: usually its name is wrong. It
// returns "" if the group was used, or if that is not known.
func neverUsed(ctx context.Context, src *place.Source) string {
	asked, ok := src.Locks.(source.Known)
	if !ok {
		return ""
	}
	if known, err := asked.Known(ctx); known || err != nil {
		return ""
	}
	return fmt.Sprintf("%s has never been used: is that the place (-d or --source) and the group (-g)?", src.Where())
}

// checkFollowed rejects --follow for a job that is neither in the group's list nor has a result.
func checkFollowed(ctx context.Context, src *place.Source, ledger source.Ledger, name string) error {
	if text := neverUsed(ctx, src); text != "" {
		return console.Usagef("logs", "%s", text)
	}
	list, ok := src.Locks.(source.ManifestStore)
	if !ok {
		return nil
	}
	stages, err := joblist.Stages(ctx, list)
	if err != nil || len(stages) == 0 || slices.Contains(slices.Concat(stages...), name) {
		return err
	}
	if _, err := ledger.Result(ctx, name); !errors.Is(err, multilock.ErrNoResult) {
		return err
	}
	return console.Usagef("logs", "there is no job %q in the list of %s", name, src.Where())
}
