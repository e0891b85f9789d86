// Package budget limits how much one command reads of files that other users write, and counts what it
// skips.
package budget

import (
	"context"
	"fmt"
)

// Budget is the rest of a limit. It is not safe for concurrent use.
type Budget struct {
	most, left int64
	files      int
	bytes      int64
}

// perRead is charged for each read in addition to its bytes: even an empty file costs requests.
const perRead = 4 << 10

// New returns a budget of that many bytes.
func New(most int64) *Budget { return &Budget{most: most, left: most} }

type key struct{}

// Once returns a context whose readers share one budget: what a command reads twice counts twice.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, new(Budget)) }

// Of returns the budget that the context's readers share, or one for this reader alone.
func Of(ctx context.Context, most int64) *Budget {
	b, ok := ctx.Value(key{}).(*Budget)
	switch {
	case !ok:
		return New(most)
	case b.most == 0:
		*b = *New(most)
	}
	return b
}

// Share returns a budget for one of n equal parts of the rest.
func (b *Budget) Share(n int) *Budget { return New(b.Left() / int64(n)) }

// Charge subtracts what a share has spent.
func (b *Budget) Charge(share *Budget) { b.left -= share.most - share.left }

// Spend charges one read of so many bytes.
func (b *Budget) Spend(bytes int64) { b.left -= bytes + perRead }

// Over reports whether the budget is used up.
func (b *Budget) Over() bool { return b.left <= 0 }

// Left returns the rest of the budget.
func (b *Budget) Left() int64 { return max(b.left, 0) }

// Skip counts a file of which so many bytes were skipped, as far as that is known.
func (b *Budget) Skip(bytes int64) { b.files, b.bytes = b.files+1, b.bytes+max(bytes, 0) }

// Skipped returns an error about what Skip counted; nil if nothing was skipped.
func (b *Budget) Skipped() error {
	if b.files == 0 {
		return nil
	}
	return fmt.Errorf("files that are not read completely: %d, with %.1f MiB or more, because only %.1f MiB are read; move unneeded files away",
		b.files, mib(b.bytes), mib(b.most))
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
