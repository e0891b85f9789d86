package batch

import (
	"maps"
	"slices"
	"time"

	"github.com/multilock/go/multilock"
)

// Progress is the progress of a batch, across all hosts.
type Progress struct {
	// Total is the length of the list; Done and Failed count final results.
	Total, Done, Failed int
	// Before counts the final results when Run began to take jobs.
	Before int
	// Running counts the jobs that this process runs, Elsewhere the open jobs in units that other
	// processes held at their last inspection.
	Running, Elsewhere int
	// TakenOver counts the locks of dead holders that this process broke.
	TakenOver int
	// Ran counts the attempts that this process made and recorded.
	Ran int
	// Busy is why this process begins no job: see Options.Busy.
	Busy string
}

// Report is the state when Run returned.
type Report struct {
	Progress
	// Failures are the results of jobs that have failed and get no more attempts, in the order of the
	// list; at most a thousand.
	Failures []multilock.Result
	// Incomplete are the results of jobs that succeeded with incomplete output (Result.Output), in the
	// order of the list; at most a thousand.
	Incomplete []multilock.Result
	// Trouble is the first error with other hosts' updates, nil without one. Without updates a batch is
	// as safe, but slower.
	Trouble error
}

// Progress may be called at any time, also while Run runs.
func (b *Batch) Progress() Progress {
	b.schedule.mu.Lock()
	defer b.schedule.mu.Unlock()
	return b.schedule.progress()
}

func (q *schedule) progress() Progress {
	p := Progress{
		Total: q.open + q.done + q.failed, Done: q.done, Failed: q.failed, Before: q.before, Running: q.running,
		TakenOver: q.takenOver, Ran: q.ran, Busy: q.throttle.busy,
	}
	for i := range q.elsewhere {
		p.Elsewhere += q.openIn(&q.units[i])
	}
	return p
}

// Estimate estimates the total duration of jobs: of those that ended since Run began, on all hosts, and
// of those that are left.
func (b *Batch) Estimate() (done, left time.Duration) {
	b.schedule.mu.Lock()
	defer b.schedule.mu.Unlock()
	e := b.schedule.work.Estimate()
	return e.Done, e.Left
}

func (b *Batch) report() Report {
	b.schedule.mu.Lock()
	defer b.schedule.mu.Unlock()
	return Report{Progress: b.schedule.progress(), Trouble: b.exchange.trouble, Failures: inOrder(b.schedule.failures), Incomplete: inOrder(b.schedule.incomplete)}
}

func inOrder(kept map[int]multilock.Result) (results []multilock.Result) {
	for _, i := range slices.Sorted(maps.Keys(kept)) {
		results = append(results, kept[i])
	}
	return results
}
