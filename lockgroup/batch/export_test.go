package batch

import "github.com/multilock/go/multilock/source"

// InOneChunk makes the whole list one chunk, and replaces random choices. All hosts must call it.
func (b *Batch) InOneChunk(chance func(n int64) int64) {
	b.schedule.change(func() {
		all := unit{Range: source.Range{From: 1, To: len(b.jobs)}}
		b.schedule.claims = *newClaims([]unit{all}, len(b.jobs), false)
		b.schedule.chance = chance
	})
}

// LeaveNothingToChance replaces random choices.
func (b *Batch) LeaveNothingToChance(chance func(n int64) int64) {
	b.schedule.change(func() { b.schedule.chance = chance })
}
