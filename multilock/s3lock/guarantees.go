package s3lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/multilock/go/multilock/source"
)

var (
	_ source.Describer = (*Source)(nil)
	_ source.Examiner  = (*Source)(nil)
)

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	return append(s.Alike(),
		source.Keeps(source.TraitSafeSilence, "a holder gives its lock up after four fifths of its TTL without a heartbeat that the store has carried out"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or when a waiter has seen no heartbeat for the whole TTL, by its own clock"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's object"),
		source.Keeps(source.TraitPromptRelease, "one conditional write empties the object; waiters poll every few seconds"),
		source.Keeps(source.TraitFenceNumbers, "a counter in the lock's object, which must not be removed"),
		source.Keeps(source.TraitQueue, "with --fair, by tickets; otherwise the first to ask acquires it"),
		source.Keeps(source.TraitOneClock, "the store's, to a second: the date of its answers; no lock depends on it"),
		source.Keeps(source.TraitCheapBarrier, "a listing: a request for each thousand names that were ever used"),
		source.Keeps(source.TraitResults, "in the lock's own object, which only the lock's holder writes"),
		source.Keeps(source.TraitManifest, "parts of 8 MiB, 64 MiB at most, which the first host publishes in one step"),
		source.Keeps(source.TraitHistory, "an object for each write, for at least 90 days; events that cannot be written are missing"),
	)
}

// Examine implements source.Examiner: it tests the store's guarantees.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	where := fmt.Sprintf("the bucket %s at %s", s.at.bucket, s.at.endpoint)
	err := s.try(ctx, longRounds)
	switch {
	case errors.Is(err, errUnfit):
		return []source.Finding{source.Unusable("store", err.Error(), s.hint(err))}
	case err != nil:
		return []source.Finding{source.Unusable("store", s.OpError(ctx, "test "+where, "", err).Error(), "")}
	}
	if err := s.Try(ctx); err != nil {
		return []source.Finding{source.Unusable("store", err.Error(), "")}
	}
	findings := []source.Finding{
		source.Fine("store", where+" answers, reads and lists what was just written"),
		source.Fine("conditions", fmt.Sprintf("of %d writers at once exactly one wrote, in %d rounds, creating and replacing an object", width, longRounds+1)),
	}
	if s.at.tls == nil && !isLoopback(s.at.endpoint) {
		findings = append(findings, source.Warning("tls", "nothing is encrypted on the way to "+s.at.endpoint, "remove tls=false from the URL"))
	}
	return findings
}
