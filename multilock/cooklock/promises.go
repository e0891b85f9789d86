package cooklock

import "github.com/multilock/go/multilock"

// Promises implements multilock.Describer.
func (s *Source) Promises() []multilock.Promise {
	return append(timedPromises(),
		multilock.Promise{
			Trait: multilock.SafeSilence, Kept: true,
			Why: "a holder has to be done after four fifths of the period, and nobody else begins before the whole of it is over, however long anybody is paused or cut off",
		},
		multilock.Promise{
			Trait: multilock.FenceNumbers, Kept: true,
			Why: "the register counts its swaps; a million numbers belong to each",
		})
}

// timedPromises are those of every lock that ends by time alone.
func timedPromises() []multilock.Promise {
	no := func(trait multilock.Trait, why string) multilock.Promise {
		return multilock.Promise{Trait: trait, Why: why}
	}
	return []multilock.Promise{
		no(multilock.DeadProcess, "a lock ends by time alone; a dead holder's lasts for its period as well"),
		no(multilock.BreakByEvidence, "a lock ends by time alone, and cannot be broken"),
		no(multilock.BreakByForce, "a lock ends by time alone, and cannot be broken"),
		{Trait: multilock.NamedHolder, Kept: true, Why: "who took it last, and until when the lock is that one's"},
		no(multilock.PromptRelease, "a lock that is released stays taken until its period is over"),
		no(multilock.JobMark, "what works under the lock has to be ended when its time is over"),
		no(multilock.OneClock, "hosts compare no clocks, and a register has none"),
		no(multilock.CheapBarrier, "each register has to be asked for itself"),
		no(multilock.Results, "a register holds one value and no results"),
		no(multilock.Manifest, "a register holds one value and no list of jobs"),
		no(multilock.RunHistory, "a register holds one value and no history"),
		no(multilock.History, "a register holds one value and no history"),
	}
}
