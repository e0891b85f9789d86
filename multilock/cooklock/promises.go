package cooklock

import "github.com/multilock/go/multilock/source"

// Promises implements source.Describer.
func (s *Source) Promises() []source.Promise {
	no := func(trait source.Trait, why string) source.Promise {
		return source.Promise{Trait: trait, Why: why}
	}
	return []source.Promise{
		no(source.TraitDeadProcess, "a lock ends by time alone; a dead holder's lasts for its period as well"),
		no(source.TraitBreakByEvidence, "a lock ends by time alone, and cannot be broken"),
		no(source.TraitBreakByForce, "a lock ends by time alone, and cannot be broken"),
		{Trait: source.TraitNamedHolder, Kept: true, Why: "who took it last, and until when the lock is that one's"},
		no(source.TraitPromptRelease, "a lock that is released stays taken until its period is over"),
		no(source.TraitJobMark, "what works under the lock has to be ended when its time is over"),
		no(source.TraitOneClock, "hosts compare no clocks, and a register has none"),
		no(source.TraitCheapBarrier, "each register has to be asked for itself"),
		no(source.TraitResults, "a register holds one value and no results"),
		no(source.TraitManifest, "a register holds one value and no list of jobs"),
		no(source.TraitRunHistory, "a register holds one value and no history"),
		no(source.TraitHistory, "a register holds one value and no history"),
		{
			Trait: source.TraitSafeSilence, Kept: true,
			Why: "a holder has to be done after four fifths of the period, and nobody else begins before the whole of it is over, however long anybody is paused or cut off",
		},
		{
			Trait: source.TraitFenceNumbers, Kept: true,
			Why: "the register counts its swaps; a million numbers belong to each",
		},
	}
}
