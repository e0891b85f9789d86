package mongolock

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/multilock/go/multilock"
)

var (
	_ multilock.Describer = (*Source)(nil)
	_ multilock.Examiner  = (*Source)(nil)
)

// Promises implements multilock.Describer.
func (s *Source) Promises() []multilock.Promise {
	kept := map[multilock.Trait]string{
		multilock.SafeSilence:     "a holder stops believing in its lock after four fifths of its TTL without a sign of life that the majority of the replica set has acknowledged; a standalone server that loses its disk loses its locks",
		multilock.BreakByEvidence: "when its process is gone, or when whoever waits has seen no sign of life for the whole TTL, by its own clock",
		multilock.BreakByForce:    "by its name, or by one acquisition's token; the holder learns it at its next sign of life",
		multilock.NamedHolder:     "host, process, user and command, in the lock's document; what other programs lock names nobody",
		multilock.PromptRelease:   "one write frees the document; those who wait ask again within a second",
		multilock.FenceNumbers:    "a counter in the lock's document, which must not be removed",
		multilock.OneClock:        "the primary's, so the servers of a replica set need clocks that agree",
		multilock.CheapBarrier:    "one query of an index, answered by the primary after the majority has confirmed that it still is",
		multilock.Results:         "a field of the lock's own document, written by the lock's holder alone",
		multilock.Manifest:        "a document that the first host inserts",
		multilock.RunHistory:      "how each run ended, and whose lock was broken",
		multilock.History:         "documents of a collection beside the locks; what cannot be written is not in it",
	}
	promises := []multilock.Promise{s.promiseOfDeath(), promiseOfJobs()}
	for _, trait := range multilock.Traits() {
		if why, ok := kept[trait]; ok {
			promises = append(promises, multilock.Promise{Trait: trait, Kept: true, Why: why})
		}
	}
	return promises
}

// promiseOfDeath is kept where a process can be told from a later one of the same
// number, on the same boot.
func (s *Source) promiseOfDeath() multilock.Promise {
	p := multilock.Promise{Trait: multilock.DeadProcess, Kept: s.self.Boot != "" && s.self.Start != 0}
	p.Why = "on the holder's own host, and in its own pid namespace; from another host after the TTL"
	if !p.Kept {
		p.Why = "this system does not say which boot this is, or when a process was started; silence alone decides"
	}
	return p
}

func promiseOfJobs() multilock.Promise {
	p := multilock.Promise{Trait: multilock.JobMark, Kept: runtime.GOOS != "windows"}
	p.Why = "a field of the lock's document; as long as one of the processes lives the lock is held on that host"
	if !p.Kept {
		p.Why = fmt.Sprintf("%s has no process groups", runtime.GOOS)
	}
	return p
}

// Examine implements multilock.Examiner. It makes the index, if there is none.
func (s *Source) Examine(ctx context.Context) []multilock.Finding {
	f, err := s.readyToWrite(ctx)
	if err != nil {
		return []multilock.Finding{{Subject: "server", Severity: multilock.Unusable, Text: err.Error()}}
	}
	return []multilock.Finding{s.findServer(f), s.findIndex(f), s.findClock(ctx)}
}

func (s *Source) findServer(f facts) multilock.Finding {
	found := multilock.Finding{Subject: "server", Severity: multilock.Fine, Text: fmt.Sprintf("MongoDB %s, %s", f.version, f.kind)}
	if !f.replicated {
		found.Severity = multilock.Warning
		found.Text += ": when it is down nobody can lock, and a disk that is lost takes the locks along, also those that are held"
		found.Advice = "use a replica set of three"
	}
	return found
}

func (s *Source) findIndex(f facts) multilock.Finding {
	if f.unindexed == nil {
		return multilock.Finding{Subject: "index", Severity: multilock.Fine, Text: "there is one for what is held, and for results"}
	}
	return multilock.Finding{
		Subject: "index", Severity: multilock.Warning, Text: "there may be none: " + f.unindexed.Error(),
		Advice: "have an administrator make one on {group: 1, locked: 1, commits: 1}: without it lists and barriers read the whole collection, and a barrier does not see one instant",
	}
}

// findClock compares the server's clock with this host's. Nothing depends on it;
// people who compare logs want to know.
func (s *Source) findClock(ctx context.Context) multilock.Finding {
	now, err := s.clock.now(ctx, s, 0)
	if err != nil {
		return multilock.Finding{Subject: "clock", Severity: multilock.Warning, Text: err.Error()}
	}
	differ := time.Since(now).Round(time.Millisecond)
	return multilock.Finding{
		Subject: "clock", Severity: multilock.Fine, Text: fmt.Sprintf("this host's clock and the server's differ by %s; locks do not depend on it", differ.Abs()),
	}
}
