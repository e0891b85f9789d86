package source

import (
	"context"
	"runtime"

	"github.com/multilock/go/multilock/process"
)

// Trait is something that holders can rely on with some sources and not with others.
type Trait string

// The traits that a source is asked about.
const (
	// TraitOneClock: all hosts read the same clock from the source.
	TraitOneClock Trait = "one clock"
	// TraitFenceNumbers: an acquisition can have a number larger than any earlier one's.
	TraitFenceNumbers Trait = "fence numbers"
	// TraitResults: the source keeps how jobs ended.
	TraitResults Trait = "results"
	// TraitHistory: the source keeps what happened to its locks.
	TraitHistory Trait = "history"
	// TraitManifest: hosts can agree about one list of jobs.
	TraitManifest Trait = "manifest"
	// TraitCheapBarrier: one request tells whether anything in the group is held.
	TraitCheapBarrier Trait = "cheap barrier"
	// TraitDeadProcess: a holder whose process has ended is noticed at once on its host.
	TraitDeadProcess Trait = "dead process"
	// TraitJobMark: a lock can name the processes that work under it.
	TraitJobMark Trait = "job mark"
	// TraitNamedHolder: a lock tells who holds it, and by which acquisition.
	TraitNamedHolder Trait = "named holder"
	// TraitBreakByEvidence: a lock is broken when its holder is dead.
	TraitBreakByEvidence Trait = "break by evidence"
	// TraitBreakByForce: whoever knows better can break a lock.
	TraitBreakByForce Trait = "break by force"
	// TraitPromptRelease: a lock is free for others as soon as it is released.
	TraitPromptRelease Trait = "prompt release"
	// TraitQueue: those who wait for a lock can stand in line.
	TraitQueue Trait = "queue"
	// TraitSafeSilence: a holder that was cut off from the source knows that it lost before
	// others may have the lock.
	TraitSafeSilence Trait = "safe silence"
)

// Traits are all traits, in the order in which people are told of them.
func Traits() []Trait {
	return []Trait{
		TraitSafeSilence, TraitNamedHolder, TraitDeadProcess, TraitBreakByEvidence, TraitBreakByForce,
		TraitPromptRelease, TraitJobMark, TraitFenceNumbers, TraitQueue, TraitOneClock, TraitCheapBarrier,
		TraitResults, TraitManifest, TraitHistory,
	}
}

// Promise is what a source says about one trait.
type Promise struct {
	Trait Trait `json:"trait"`
	Kept  bool  `json:"kept"`
	// Why is one sentence, without a full stop: how the promise is kept and within
	// what limits, or why it is not.
	Why string `json:"why"`
}

// Keeps is a promise that is kept.
func Keeps(trait Trait, why string) Promise { return Promise{trait, true, why} }

// Lacks is one that is not.
func Lacks(trait Trait, why string) Promise { return Promise{trait, false, why} }

// PromiseOfDeath is kept where a process can be told from a later one of the same number,
// on the same boot.
func PromiseOfDeath(self process.Identity) Promise {
	if self.Boot == "" || self.Start == 0 {
		return Lacks(TraitDeadProcess, "this system does not say which boot this is, or when a process was started; silence alone decides")
	}
	return Keeps(TraitDeadProcess, "on the holder's own host, and in its own pid namespace; from another host after the TTL")
}

// PromiseOfJobs is kept where there are process groups; how says how a lock names one.
func PromiseOfJobs(how string) Promise {
	if runtime.GOOS == "windows" {
		return Lacks(TraitJobMark, runtime.GOOS+" has no process groups")
	}
	return Keeps(TraitJobMark, how+"; as long as one of the processes lives the lock is held on that host")
}

// Describer is a Source that says what it promises.
type Describer interface {
	Source
	// Promises has one promise for each of Traits, in any order. It asks nobody: what
	// depends on a server, and was not learned from it yet, is left out. How it is
	// learned the source itself says.
	Promises() []Promise
}

// PromiseOf is what a source says about a trait; ok is false if it says nothing.
func PromiseOf(src Source, trait Trait) (promise Promise, ok bool) {
	describer, ok := src.(Describer)
	if !ok {
		return Promise{}, false
	}
	for _, p := range describer.Promises() {
		if p.Trait == trait {
			return p, true
		}
	}
	return Promise{}, false
}

// Denies says whether a source says of itself that it does not have a trait. One that
// says nothing is to be tried.
func Denies(src Source, trait Trait) bool {
	promise, told := PromiseOf(src, trait)
	return told && !promise.Kept
}

// Ability is a source as one that has the methods of T. One that has them may still deny
// the trait that they are for: for this place, or this server.
func Ability[T any](src Source, trait Trait) (able T, ok bool) {
	able, ok = src.(T)
	return able, ok && !Denies(src, trait)
}

// Severity says how bad a Finding is.
type Severity string

// The severities.
const (
	SeverityFine     Severity = "fine"
	SeverityWarning  Severity = "warning"  // it works, and something should be done about it
	SeverityUnusable Severity = "unusable" // locks here would not be safe, or cannot be taken at all
)

// Finding is one thing that an examination of a source showed.
type Finding struct {
	Subject  string   `json:"subject"` // "filesystem", "clock", ...
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	// Advice tells a person what to do, "" if there is nothing to be done.
	Advice string `json:"advice,omitempty"`
}

// Fine is a finding that nothing has to be done about.
func Fine(subject, text string) Finding {
	return Finding{Subject: subject, Severity: SeverityFine, Text: text}
}

// Warning is a finding that something should be done about.
func Warning(subject, text, advice string) Finding {
	return Finding{Subject: subject, Severity: SeverityWarning, Text: text, Advice: advice}
}

// Unusable is a finding that locks cannot be had.
func Unusable(subject, text, advice string) Finding {
	return Finding{Subject: subject, Severity: SeverityUnusable, Text: text, Advice: advice}
}

// Examiner is a Source that can be examined: by somebody who wants to know what it
// is, and whether all that it relies on is there.
type Examiner interface {
	Source
	// Examine looks at the system behind the source and tries it out. It may write
	// where the source keeps its own things, and touches no lock. What goes wrong is
	// a finding, too.
	Examine(ctx context.Context) []Finding
}
