package locktest

import (
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

// testGuarantees compares what a source declares with the list of capabilities.
func testGuarantees(p *place) {
	src, ok := p.open().(source.Describer)
	if !ok {
		p.Skip("the source does not describe itself")
	}
	kept := map[source.Trait]bool{}
	for _, guarantee := range src.Guarantees() {
		require.Contains(p, source.Traits(), guarantee.Trait)
		require.NotContains(p, kept, guarantee.Trait, "it is guaranteed twice")
		require.NotEmpty(p, guarantee.Why, guarantee.Trait)
		kept[guarantee.Trait] = guarantee.Kept
	}
	require.Len(p, kept, len(source.Traits()), "something is not told of: %v", kept)
	for trait, able := range map[source.Trait]bool{
		source.TraitResults:      is[source.Ledger](src),
		source.TraitHistory:      is[source.Journal](src),
		source.TraitManifest:     is[source.ManifestStore](src),
		source.TraitOneClock:     is[source.Timekeeper](src),
		source.TraitCheapBarrier: is[source.Group](src),
	} {
		require.True(p, able || !kept[trait], "%s is guaranteed, and there is no method for it", trait)
	}
	require.Equal(p, p.fixture.Fences, kept[source.TraitFenceNumbers])
	require.Equal(p, p.fixture.Marks, kept[source.TraitJobMark])
	require.Equal(p, p.fixture.Deaths, kept[source.TraitDeadProcess])
}

func is[T any](src source.Source) bool {
	_, ok := src.(T)
	return ok
}
