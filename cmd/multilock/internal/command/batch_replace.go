package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/multilock/go/cmd/multilock/internal/place"
	"github.com/multilock/go/lockgroup/batch"
)

// tellReplaced returns a function that prints the changes to the group's list.
func (o *batchOptions) tellReplaced(e *Env) func(batch.Changes) {
	if o.Quiet {
		return nil
	}
	return func(c batch.Changes) { e.Say("list replaced: %s", changesText(c)) }
}

// changesText formats changes: "3 commands changed, 2 jobs added, 1 removed, 57 unchanged".
func changesText(c batch.Changes) string {
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, text)
		}
	}
	add(len(c.Changed), plural(len(c.Changed), "command")+" changed")
	add(len(c.Added), plural(len(c.Added), "job")+" added")
	add(len(c.Removed), fmt.Sprintf("%d removed", len(c.Removed)))
	add(len(c.Redone), fmt.Sprintf("%d to run again", len(c.Redone)))
	return strings.Join(append(parts, fmt.Sprintf("%d unchanged", c.Unchanged)), ", ")
}

// foreseeChanges predicts the changes by --replace, and applies them to the outcomes.
func (f *prediction) foreseeChanges(ctx context.Context, e *Env, src *place.Source, o *batchOptions, list batchList) (batch.Changes, error) {
	r, err := newBatchRun(e, src, o, list)
	if err != nil {
		return batch.Changes{}, err
	}
	defer r.close() //nolint:errcheck // nothing was written
	b, err := o.newBatch(e, src, list, r)
	if err != nil {
		return batch.Changes{}, err
	}
	c, err := b.Foresee(ctx)
	if err != nil {
		return c, o.hinted(err)
	}
	for _, name := range c.Changed {
		if i := f.at[name]; f.outcomes[i] != outcomeDone && !strings.HasPrefix(f.outcomes[i], outcomeHeld) {
			f.outcomes[i] = "would run, changed"
		}
	}
	for _, name := range c.Redone {
		f.outcomes[f.at[name]] = "would run again"
	}
	e.Say("list would be replaced: %s", changesText(c))
	return c, nil
}
