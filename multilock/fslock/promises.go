package fslock

import "github.com/multilock/go/multilock/source"

var _ source.Describer = (*Source)(nil)

// Promises implements source.Describer.
func (s *Source) Promises() []source.Promise {
	return []source.Promise{
		source.PromiseOfDeath(s.self),
		source.PromiseOfJobs("a second file in the lock's directory"),
		source.Keeps(source.TraitSafeSilence, "a holder stops believing in its lock after four fifths of its TTL without a confirmed sign of life; that somebody moved the lock, its group or its base it learns from a sign of life, at the latest the eighth"),
		source.Keeps(source.TraitBreakByEvidence, "when its process is gone, or after its TTL in silence by the server's clock and a while of watching"),
		source.Keeps(source.TraitBreakByForce, "by its name, or by one acquisition's token; the holder learns it at its next sign of life"),
		source.Keeps(source.TraitNamedHolder, "host, process, user and command, in the lock's file"),
		source.Keeps(source.TraitPromptRelease, "its directory is empty then, and the next rename takes it"),
		source.Keeps(source.TraitFenceNumbers, "the length of a file that every draw appends to, given only while the lock is in its place; not across a crash of a server that exports async"),
		source.Keeps(source.TraitOneClock, "the file server's, read from a directory that was made just now"),
		source.Keeps(source.TraitCheapBarrier, "the group's directory is empty exactly when nothing in it is held"),
		source.Keeps(source.TraitResults, "a file for each job, renamed into place by the lock's holder alone"),
		source.Keeps(source.TraitManifest, "a directory with the list, renamed into place by the first host"),
		source.Keeps(source.TraitHistory, "a file for each host and day; what cannot be written is not in it"),
		source.Keeps(source.TraitRunHistory, "how each run ended, and whose lock was broken"),
	}
}
