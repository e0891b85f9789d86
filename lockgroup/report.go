package lockgroup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/multilock/go/multilock"
)

// Holding is a lock and the last observation of its holder.
type Holding struct {
	Name        string
	Observation multilock.Observation
}

// Report is the state at the end of a wait. Everything is sorted by name.
type Report struct {
	// Done counts the jobs that have succeeded, with Members or Expect.
	Done int
	// Failed are the results of jobs that have failed and get no more attempts. Without Members and Expect
	// they come from the history: jobs whose last run failed, lost its lock, or has no end there.
	Failed []multilock.Result
	// Incomplete are the results of jobs that succeeded with incomplete output (Result.Output).
	Incomplete []multilock.Result
	// Crashed are the dead holders, with the evidence, that this barrier or another process found, except
	// those whose jobs another host has finished since.
	Crashed []Holding
	// Unread is why the history is incomplete, nil if it is complete or was not read. If not nil, Failed
	// and Crashed may lack a failed job.
	Unread error
	// Missing are the members without a final result.
	Missing []string
	// Short is how many of the expected results are missing.
	Short int
	// Left are the reasons why locks of dead holders could not be cleared from this host.
	Left []error
	// Held are the holders that kept the barrier closed at the last inspection.
	Held []Holding
}

// OK reports whether no job failed or died.
func (r Report) OK() bool { return len(r.Failed)+len(r.Crashed) == 0 }

// Progress is the progress of a wait.
type Progress struct {
	// Total is how many jobs are waited for, 0 if unknown.
	Total int
	// Done and Failed count the final results, Crashed the dead holders.
	Done, Failed, Crashed int
	// Held are the holders at the last inspection, which may be older than the last poll.
	Held []Holding
}

// Progress may be called at any time, also while Wait runs.
func (b *Barrier) Progress() Progress {
	r := b.report()
	total := b.opt.Expect
	if len(b.opt.Members) > 0 {
		total = b.results.wanted()
	}
	return Progress{Total: total, Done: r.Done, Failed: len(r.Failed), Crashed: len(r.Crashed), Held: r.Held}
}

func (b *Barrier) report() Report {
	r := Report{
		Crashed: sorted(b.holders.dead(), func(h Holding) bool { return b.results == nil || b.results.awaited(h.Name) }),
		Held:    sorted(b.holders.seen(), func(h Holding) bool { return h.Observation.State != multilock.StateFree && b.concerns(h.Name) }),
	}
	_, left := b.holders.inTheWay()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		r.Left = append(r.Left, left[name])
	}
	if b.results == nil {
		b.reportEnds(&r)
		return r
	}
	b.results.report(&r)
	if b.opt.Expect > 0 {
		r.Short = max(b.opt.Expect-b.results.count(), 0)
	}
	return r
}

// reportEnds replaces dead holders by their outcomes in the history.
func (b *Barrier) reportEnds(r *Report) {
	found, untold := b.outcomes()
	r.Unread = untold
	if found == nil {
		return
	}
	r.Crashed = slices.DeleteFunc(r.Crashed, func(h Holding) bool { return found.knows(h.Name, h.Observation.Record.Token) })
	found.report(r)
	slices.SortStableFunc(r.Crashed, func(a, b Holding) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *results) report(to *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to.Done, to.Missing = r.all.done, slices.Sorted(maps.Keys(r.missing))
	for _, t := range r.reported {
		to.Failed, to.Incomplete = append(to.Failed, t.failed...), append(to.Incomplete, t.incomplete...)
	}
	slices.SortFunc(to.Failed, byName)
	slices.SortFunc(to.Incomplete, byName)
}

func byName(a, b multilock.Result) int { return cmp.Compare(a.Name, b.Name) }

// sorted returns the holders that count, sorted by name.
func sorted(seen map[string]multilock.Observation, counts func(Holding) bool) []Holding {
	var all []Holding
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if h := (Holding{name, seen[name]}); counts(h) {
			all = append(all, h)
		}
	}
	return all
}

// dead returns the holders that were found dead.
func (h *holders) dead() map[string]multilock.Observation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.crashed)
}
