package source

import (
	"context"
	"runtime"

	"github.com/multilock/go/multilock/process"
)

// Trait is a guarantee that some sources give and others do not.
type Trait string

// The known traits.
const (
	// TraitOneClock: all hosts read the same clock from the source.
	TraitOneClock Trait = "one clock"
	// TraitFenceNumbers: an acquisition can have a number larger than any earlier one's.
	TraitFenceNumbers Trait = "fence numbers"
	// TraitResults: the source records how jobs ended.
	TraitResults Trait = "results"
	// TraitHistory: the source records what happened to its locks.
	TraitHistory Trait = "history"
	// TraitManifest: hosts can agree on one list of jobs.
	TraitManifest Trait = "manifest"
	// TraitCheapBarrier: one request shows whether any lock of the group is held.
	TraitCheapBarrier Trait = "cheap barrier"
	// TraitDeadProcess: on the holder's host, the end of its process is noticed at once.
	TraitDeadProcess Trait = "dead process"
	// TraitJobMark: a lock can name the processes that run under it.
	TraitJobMark Trait = "job mark"
	// TraitNamedHolder: a lock names its holder and the acquisition.
	TraitNamedHolder Trait = "named holder"
	// TraitBreakByEvidence: a lock is broken when its holder is dead.
	TraitBreakByEvidence Trait = "break by evidence"
	// TraitBreakByForce: a user can break a lock without evidence.
	TraitBreakByForce Trait = "break by force"
	// TraitPromptRelease: a lock is free for others as soon as it is released.
	TraitPromptRelease Trait = "prompt release"
	// TraitQueue: waiters for a lock can queue.
	TraitQueue Trait = "queue"
	// TraitSafeSilence: a holder that was cut off from the source knows that it lost the lock
	// before another process can acquire it.
	TraitSafeSilence Trait = "safe silence"
)

// Traits returns all traits, in the order in which they are shown.
func Traits() []Trait {
	return []Trait{
		TraitSafeSilence, TraitNamedHolder, TraitDeadProcess, TraitBreakByEvidence, TraitBreakByForce,
		TraitPromptRelease, TraitJobMark, TraitFenceNumbers, TraitQueue, TraitOneClock, TraitCheapBarrier,
		TraitResults, TraitManifest, TraitHistory,
	}
}

// Guarantee is a source's statement about one trait.
type Guarantee struct {
	Trait Trait `json:"trait"`
	Kept  bool  `json:"kept"`
	// Why is one sentence without a full stop: how the source guarantees the trait and within what
	// limits, or why it does not.
	Why string `json:"why"`
}

// Keeps returns the statement that a source has a trait.
func Keeps(trait Trait, why string) Guarantee { return Guarantee{trait, true, why} }

// Lacks returns the statement that a source does not have a trait.
func Lacks(trait Trait, why string) Guarantee { return Guarantee{trait, false, why} }

// GuaranteeOfDeath states TraitDeadProcess: it requires that a process can be distinguished from a
// later one with the same pid, on the same boot.
func GuaranteeOfDeath(self process.Identity) Guarantee {
	if self.Boot == "" || self.Start == 0 {
		return Lacks(TraitDeadProcess, "this system does not report its boot ID, or when a process was started; only missed heartbeats decide")
	}
	return Keeps(TraitDeadProcess, "on the holder's own host, and in its own pid namespace; from another host after the TTL")
}

// GuaranteeOfJobs states TraitJobMark: it requires process groups. how describes where a lock names
// one.
func GuaranteeOfJobs(how string) Guarantee {
	if runtime.GOOS == "windows" {
		return Lacks(TraitJobMark, runtime.GOOS+" has no process groups")
	}
	return Keeps(TraitJobMark, how+"; on that host, the lock counts as held while one of the processes lives")
}

// Describer is a Source that describes its guarantees.
type Describer interface {
	Source
	// Guarantees returns one Guarantee for each of Traits, in any order. It sends no request: a trait
	// that depends on the server is left out until the source has learned it from an earlier
	// request.
	Guarantees() []Guarantee
}

// GuaranteeOf returns a source's statement about a trait; ok is false if there is none.
func GuaranteeOf(src Source, trait Trait) (guarantee Guarantee, ok bool) {
	describer, ok := src.(Describer)
	if !ok {
		return Guarantee{}, false
	}
	for _, p := range describer.Guarantees() {
		if p.Trait == trait {
			return p, true
		}
	}
	return Guarantee{}, false
}

// Denies reports whether a source states that it lacks a trait. A source without a statement should
// be tried.
func Denies(src Source, trait Trait) bool {
	guarantee, known := GuaranteeOf(src, trait)
	return known && !guarantee.Kept
}

// Ability returns a source as a T, if it has the methods and does not deny the trait for this
// location or server.
func Ability[T any](src Source, trait Trait) (able T, ok bool) {
	able, ok = src.(T)
	return able, ok && !Denies(src, trait)
}

// Severity is how bad a Finding is.
type Severity string

// The severities.
const (
	SeverityFine     Severity = "ok"
	SeverityWarning  Severity = "warning"  // it works, but something should be done about it
	SeverityUnusable Severity = "critical" // locks would not be safe, or cannot be acquired
)

// Finding is one result of an examination of a source.
type Finding struct {
	Subject  string   `json:"subject"` // "filesystem", "clock", ...
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	// Advice is what users should do, "" if there is nothing to do.
	Advice string `json:"advice,omitempty"`
}

// Fine returns a finding that requires no action.
func Fine(subject, text string) Finding {
	return Finding{Subject: subject, Severity: SeverityFine, Text: text}
}

// Warning returns a finding that something should be done about.
func Warning(subject, text, advice string) Finding {
	return Finding{Subject: subject, Severity: SeverityWarning, Text: text, Advice: advice}
}

// Unusable returns a finding that the source cannot be used.
func Unusable(subject, text, advice string) Finding {
	return Finding{Subject: subject, Severity: SeverityUnusable, Text: text, Advice: advice}
}

// Examiner is a Source that can examine its system for users.
type Examiner interface {
	Source
	// Examine inspects the system behind the source and tries it out. It may write to the source's
	// own storage, and touches no lock. Errors are findings, too.
	Examine(ctx context.Context) []Finding
}
