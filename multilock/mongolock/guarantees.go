package mongolock

import (
	"context"
	"fmt"

	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

var (
	_ source.Describer = (*Source)(nil)
	_ source.Examiner  = (*Source)(nil)
)

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	return append(s.Alike(),
		source.Keeps(source.TraitSafeSilence, "a holder gives its lock up after four fifths of its TTL without a heartbeat that the majority of the replica set has acknowledged; a standalone server that loses its disk loses its locks"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or when a waiter has seen no heartbeat for the whole TTL, by its own clock"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's document; locks of other programs name no holder"),
		source.Keeps(source.TraitPromptRelease, "one write frees the document; waiters poll within a second"),
		source.Keeps(source.TraitFenceNumbers, "a counter in the lock's document, which must not be removed"),
		source.Lacks(source.TraitQueue, "the first to ask acquires it"),
		source.Keeps(source.TraitOneClock, "the primary's: keep the clocks of the replica set in step"),
		source.Keeps(source.TraitCheapBarrier, "one query of an index, answered after the majority has confirmed the primary"),
		source.Keeps(source.TraitResults, "a field of the lock's own document, which only the lock's holder writes"),
		source.Keeps(source.TraitManifest, "a document that the first host inserts"),
		source.Keeps(source.TraitHistory, "documents of a collection beside the locks; events that cannot be written are missing"),
	)
}

// Examine implements source.Examiner. It creates the index if it is missing.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	f, err := s.readyToWrite(ctx)
	if err != nil {
		return []source.Finding{source.Unusable("server", err.Error(), "")}
	}
	findings := []source.Finding{s.findServer(f), s.findIndex(f), findExpiry(s.indexes(ctx))}
	if f.sharded {
		findings = append(findings, findSharding(s.shardKey(ctx)))
	}
	return append(findings, s.findClock(ctx))
}

func (s *Source) findServer(f facts) source.Finding {
	text := fmt.Sprintf("MongoDB %s, %s", f.version, f.kind)
	if !f.replicated {
		return source.Warning("server", text+": while it is down no lock can be acquired, and if its disk is lost, so are all locks, also those that are held", "use a replica set of three")
	}
	return source.Fine("server", text)
}

func (s *Source) findIndex(f facts) source.Finding {
	if f.unindexed == nil {
		return source.Fine("index", "held locks and results are indexed")
	}
	return source.Warning("index", "there may be no index: "+f.unindexed.Error(),
		"create an index on {group: 1, locked: 1, commits: 1} as an administrator: without it, lists and barriers read the whole collection, and a barrier does not see one instant")
}

func (s *Source) findClock(ctx context.Context) source.Finding {
	now, err := s.now(ctx, 0)
	if err != nil {
		return source.Warning("clock", err.Error(), "")
	}
	return remote.FindClock(now)
}
