package cooklock

import "github.com/multilock/go/multilock/source"

// Guarantees implements source.Describer.
func (s *Source) Guarantees() []source.Guarantee {
	return []source.Guarantee{
		source.Lacks(source.TraitDeadProcess, "a lock ends by time alone; a dead holder's lasts for its period as well"),
		source.Lacks(source.TraitBreakByEvidence, "a lock ends by time alone, and cannot be broken"),
		source.Lacks(source.TraitBreakByForce, "a lock ends by time alone, and cannot be broken"),
		source.Keeps(source.TraitNamedHolder, "the last holder, and until when the lock is its own"),
		source.Lacks(source.TraitPromptRelease, "a lock that is released stays taken until its period is over"),
		source.Lacks(source.TraitJobMark, "a job has to be ended when the time of its lock is over"),
		source.Lacks(source.TraitQueue, "a lock is free at a moment that all processes know, and the first to ask acquires it"),
		source.Lacks(source.TraitOneClock, "hosts compare no clocks, and a register has none"),
		source.Lacks(source.TraitCheapBarrier, "each register has to be asked for itself"),
		source.Lacks(source.TraitResults, "a register holds one value and no results"),
		source.Lacks(source.TraitManifest, "a register holds one value and no list of jobs"),
		source.Lacks(source.TraitHistory, "a register holds one value and no history"),
		source.Keeps(source.TraitSafeSilence, "a holder must finish within four fifths of the period, and no other begins before the whole period is over, however long a process is paused or cut off"),
		source.Keeps(source.TraitFenceNumbers, "the register counts its swaps; each has a million numbers"),
	}
}
