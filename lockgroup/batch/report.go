package batch

import (
	"maps"
	"slices"

	"github.com/multilock/go/multilock"
)

// Progress is how far a batch has come, over all hosts.
type Progress struct {
	// Total is the length of the list; Done and Failed count the final results.
	Total, Done, Failed int
	// Before is how many of those there were when Run began to take jobs.
	Before int
	// Running is how many jobs this process has in its hands, Elsewhere how many of
	// those that it met are in others'.
	Running, Elsewhere int
	// TakenOver is how many locks of the list this process has broken since Run began,
	// because their holders had died.
	TakenOver int
	// Ran counts the attempts that this process has made and recorded.
	Ran int
	// Busy is why this process begins no job now: see Options.Busy.
	Busy string
}

// Report is how things stood when Run returned.
type Report struct {
	Progress
	// Failures are the results of jobs that have failed for good, in the list's
	// order; not more than a thousand of them.
	Failures []multilock.Result
	// Incomplete are the results of jobs that are done, but whose output is not kept as a
	// whole (Result.Output), in the same way.
	Incomplete []multilock.Result
	// Trouble is the first error with the history, nil if there was none. Without
	// news of what others have done a batch is as safe, and slower.
	Trouble error
}

// Progress may be asked at any time, also while Run runs.
func (b *Batch) Progress() Progress {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.progress()
}

func (b *Batch) progress() Progress {
	p := Progress{
		Total: len(b.jobs), Done: b.hands.done, Failed: b.hands.failed, Before: b.before, Running: b.hands.running,
		TakenOver: b.takenOver, Ran: b.ran, Busy: b.hands.gate.busy,
	}
	for i := range b.hands.elsewhere {
		p.Elsewhere += b.hands.openIn(&b.hands.units[i])
	}
	return p
}

func (b *Batch) report() Report {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return Report{Progress: b.progress(), Trouble: b.trouble, Failures: inOrder(b.failures), Incomplete: inOrder(b.incomplete)}
}

func inOrder(kept map[int]multilock.Result) (results []multilock.Result) {
	for _, i := range slices.Sorted(maps.Keys(kept)) {
		results = append(results, kept[i])
	}
	return results
}
