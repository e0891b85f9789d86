package fslock

import (
	"fmt"
	"runtime"

	"github.com/multilock/go/multilock/source"
)

var _ source.Describer = (*Source)(nil)

// Promises implements source.Describer.
func (s *Source) Promises() []source.Promise {
	kept := func(trait source.Trait, why string) source.Promise {
		return source.Promise{Trait: trait, Kept: true, Why: why}
	}
	return []source.Promise{
		s.promiseOfDeath(),
		s.promiseOfJobs(),
		kept(source.TraitSafeSilence, "a holder stops believing in its lock after four fifths of its TTL without a confirmed sign of life; that somebody moved the lock, its group or its base it learns from a sign of life, at the latest the eighth"),
		kept(source.TraitBreakByEvidence, "when its process is gone, or after its TTL in silence by the server's clock and a while of watching"),
		kept(source.TraitBreakByForce, "by its name, or by one acquisition's token; the holder learns it at its next sign of life"),
		kept(source.TraitNamedHolder, "host, process, user and command, in the lock's file"),
		kept(source.TraitPromptRelease, "its directory is empty then, and the next rename takes it"),
		kept(source.TraitFenceNumbers, "the length of a file that every draw appends to, given only while the lock is in its place; not across a crash of a server that exports async"),
		kept(source.TraitOneClock, "the file server's, read from a directory that was made just now"),
		kept(source.TraitCheapBarrier, "the group's directory is empty exactly when nothing in it is held"),
		kept(source.TraitResults, "a file for each job, renamed into place by the lock's holder alone"),
		kept(source.TraitManifest, "a directory with the list, renamed into place by the first host"),
		kept(source.TraitHistory, "a file for each host and day; what cannot be written is not in it"),
		kept(source.TraitRunHistory, "how each run ended, and whose lock was broken"),
	}
}

// promiseOfDeath is kept where a process can be told from a later one of the
// same number, on the same boot.
func (s *Source) promiseOfDeath() source.Promise {
	p := source.Promise{Trait: source.TraitDeadProcess, Kept: s.self.Boot != "" && s.self.Start != 0}
	p.Why = "on the holder's own host, and in its own pid namespace; from another host after the TTL"
	if !p.Kept {
		p.Why = "this system does not say which boot this is, or when a process was started; silence alone decides"
	}
	return p
}

func (s *Source) promiseOfJobs() source.Promise {
	p := source.Promise{Trait: source.TraitJobMark, Kept: runtime.GOOS != "windows"}
	p.Why = "a second file in the lock's directory; as long as one of the processes lives the lock is held on that host"
	if !p.Kept {
		p.Why = fmt.Sprintf("%s has no process groups", runtime.GOOS)
	}
	return p
}
