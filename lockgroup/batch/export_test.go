package batch

import "github.com/multilock/go/multilock/source"

// InOneChunk has the whole list claimed as one chunk, with nothing left to chance. All hosts are to
// do so.
func (b *Batch) InOneChunk(chance func(n int64) int64) {
	b.schedule.change(func() {
		all := unit{Range: source.Range{From: 1, To: len(b.jobs)}}
		b.schedule.claims = *newClaims([]unit{all}, len(b.jobs), false)
		b.schedule.chance = chance
	})
}
