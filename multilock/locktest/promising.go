package locktest

import (
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
)

// testPromises compares what a source says of itself with what it is.
func testPromises(p *place) {
	src, ok := p.open().(multilock.Describer)
	if !ok {
		p.Skip("the source does not describe itself")
	}
	kept := map[multilock.Trait]bool{}
	for _, promise := range src.Promises() {
		require.Contains(p, multilock.Traits(), promise.Trait)
		require.NotContains(p, kept, promise.Trait, "it is promised twice")
		require.NotEmpty(p, promise.Why, promise.Trait)
		kept[promise.Trait] = promise.Kept
	}
	require.Len(p, kept, len(multilock.Traits()), "something is not told of: %v", kept)
	for trait, able := range map[multilock.Trait]bool{
		multilock.Results:      is[multilock.Ledger](src),
		multilock.History:      is[multilock.Chronicle](src),
		multilock.Manifest:     is[multilock.Register](src),
		multilock.OneClock:     is[multilock.Timekeeper](src),
		multilock.CheapBarrier: is[multilock.Group](src),
	} {
		require.True(p, able || !kept[trait], "%s is promised, and there is no method for it", trait)
	}
	require.Equal(p, p.fixture.Fences, kept[multilock.FenceNumbers])
	require.Equal(p, p.fixture.Marks, kept[multilock.JobMark])
	require.Equal(p, p.fixture.Deaths, kept[multilock.DeadProcess])
}

func is[T any](src multilock.Source) bool {
	_, ok := src.(T)
	return ok
}
