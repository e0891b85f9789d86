package lockgroup

import (
	"cmp"
	"maps"
	"slices"

	"github.com/multilock/go/multilock"
)

// Holding is a lock and what was last seen of its holder.
type Holding struct {
	Name     string
	Sighting multilock.Sighting
}

// Report is how things stand at the end of a wait. Everything is sorted by name.
type Report struct {
	// Done is how many jobs have succeeded, where results were asked for.
	Done int
	// Failed are the results of those that did not, and will not be tried again. Without
	// Members and Expect they are made of the history: of jobs whose last run failed, lost
	// its lock, or began and has no end there (Foreign says so).
	Failed []multilock.Result
	// Incomplete are the results of those that are done, but whose output is not kept as
	// a whole (Result.Output).
	Incomplete []multilock.Result
	// Crashed are the holders that were found dead, with the evidence, by this barrier or
	// by anybody else. Those whose job somebody else has done since are left out.
	Crashed []Holding
	// Untold says why the history could not tell how all jobs ended, nil if it could, or
	// was not asked. Then a job that failed may be missing in Failed and Crashed.
	Untold error
	// Missing are the members without a final result.
	Missing []string
	// Short is how many results are missing of those that were expected.
	Short int
	// Left says of locks whose holders are dead why they could not be cleared from here.
	Left []error
	// Held are the holders that were still in the way at the last look.
	Held []Holding
}

// OK says whether no job failed or died.
func (r Report) OK() bool { return len(r.Failed)+len(r.Crashed) == 0 }

// Progress is how far a wait has come.
type Progress struct {
	// Total is how many jobs are waited for, 0 if that is not known.
	Total int
	// Done and Failed count the final results, Crashed the dead holders.
	Done, Failed, Crashed int
	// Held are the holders at the last look. That is not taken at each poll.
	Held []Holding
}

// Progress may be asked at any time, also while Wait runs.
func (b *Barrier) Progress() Progress {
	r := b.report()
	total := b.opt.Expect
	if len(b.opt.Members) > 0 {
		total = b.results.wanted()
	}
	return Progress{Total: total, Done: r.Done, Failed: len(r.Failed), Crashed: len(r.Crashed), Held: r.Held}
}

// report sums up.
func (b *Barrier) report() Report {
	r := Report{
		Crashed: sorted(b.holders.dead(), func(h Holding) bool { return b.results == nil || b.results.awaited(h.Name) }),
		Held:    sorted(b.holders.seen(), func(h Holding) bool { return h.Sighting.State != multilock.StateFree && b.concerns(h.Name) }),
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

// reportEnds has the history decide about the dead as far as it knows of them.
func (b *Barrier) reportEnds(r *Report) {
	found, untold := b.told()
	r.Untold = untold
	if found == nil {
		return
	}
	r.Crashed = slices.DeleteFunc(r.Crashed, func(h Holding) bool { return found.knows(h.Name, h.Sighting.Record.Token) })
	found.report(r)
	slices.SortStableFunc(r.Crashed, func(a, b Holding) int { return cmp.Compare(a.Name, b.Name) })
}

func (r *results) report(to *Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	to.Done, to.Missing = r.all.done, slices.Sorted(maps.Keys(r.missing))
	for _, t := range r.told {
		to.Failed, to.Incomplete = append(to.Failed, t.failed...), append(to.Incomplete, t.incomplete...)
	}
	slices.SortFunc(to.Failed, byName)
	slices.SortFunc(to.Incomplete, byName)
}

func byName(a, b multilock.Result) int { return cmp.Compare(a.Name, b.Name) }

// sorted are those that count, in the order of their names.
func sorted(seen map[string]multilock.Sighting, counts func(Holding) bool) []Holding {
	var all []Holding
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if h := (Holding{name, seen[name]}); counts(h) {
			all = append(all, h)
		}
	}
	return all
}

// dead are the holders that were found dead.
func (h *holders) dead() map[string]multilock.Sighting {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.crashed)
}
