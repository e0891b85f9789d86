// Package budget limits how much one command reads of files that other users write, and
// counts what it leaves out.
package budget

import (
	"context"
	"fmt"
)

// Budget is for one goroutine.
type Budget struct {
	most, left int64
	files      int
	bytes      int64
}

// perRead is charged for each read beside its bytes: a file that is empty costs its requests.
const perRead = 4 << 10

// New is a budget of that many bytes.
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

// Share is a budget for one of n equal parts of what is left.
func (b *Budget) Share(n int) *Budget { return New(b.Left() / int64(n)) }

// Charge takes what a share has spent.
func (b *Budget) Charge(share *Budget) { b.left -= share.most - share.left }

// Spend is for one read of so many bytes.
func (b *Budget) Spend(bytes int64) { b.left -= bytes + perRead }

// Over says that nothing more is to be read.
func (b *Budget) Over() bool { return b.left <= 0 }

// Left is what has not been spent.
func (b *Budget) Left() int64 { return max(b.left, 0) }

// Skip counts a file of which so many bytes are not read, as far as that is known.
func (b *Budget) Skip(bytes int64) { b.files, b.bytes = b.files+1, b.bytes+max(bytes, 0) }

// Skipped reports what was counted by Skip; nil if that is nothing.
func (b *Budget) Skipped() error {
	if b.files == 0 {
		return nil
	}
	return fmt.Errorf("files that are not read, or not to their end: %d, with %.1f MiB or more, for no more than %.1f MiB are read; move away those that nobody needs",
		b.files, mib(b.bytes), mib(b.most))
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }
