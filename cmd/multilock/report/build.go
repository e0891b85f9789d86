package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/survey"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// Input is everything that was read from a source.
type Input struct {
	Base, Group, Title string
	Made, Since        time.Time
	Missing            []string
	Events             []source.Event      // the oldest first
	Results            []multilock.Result  // a chunk's may be its summary only
	Recorded           map[string]bool     // names with a result, including results that were not read
	Held               []lockgroup.Holding // locks held now
	Unlisted           int                 // jobs that are done and in none of the fields above
	List               *survey.List        // nil if the group has none
	Timing             *Timing             // of jobs that are in none of the fields above; may be nil
}

// Build makes the timeline from the history, the results and the locks: each may have what the others lack.
func Build(in Input) *Timeline {
	t := &Timeline{Base: in.Base, Group: in.Group, Title: in.Title, Made: in.Made, Since: in.Since, Missing: in.Missing, Hosts: []Host{}, Clocks: []ClockGap{}, Jobs: []Job{}}
	b := builder{in: &in, jobs: map[string]*Job{}, results: map[string]*multilock.Result{}, forgot: map[string]bool{}, over: map[key]bool{}}
	all := acquisitions(in.Events)
	for _, one := range all {
		b.job(one.name).Runs = append(b.job(one.name).Runs, one.runs()...)
	}
	b.count(t)
	for i := range in.Results {
		if r := &in.Results[i]; r.Chunk == nil {
			b.result(r)
		} else {
			b.chunk(r)
		}
	}
	for _, h := range in.Held {
		b.hold(h)
	}
	if t.timing = in.Timing; t.timing == nil {
		t.timing = &Timing{}
	}
	t.Jobs = slices.Grow(t.Jobs, len(b.jobs))
	for _, name := range slices.Sorted(maps.Keys(b.jobs)) {
		b.conclude(b.jobs[name], b.results[name])
		b.jobs[name].Missed = missedOf(b.jobs[name].Runs)
		b.schedule(b.jobs[name])
		t.timing.addListed(b.jobs[name])
		t.Summary.Missed += b.jobs[name].Missed
		t.Jobs = append(t.Jobs, *b.jobs[name])
	}
	t.Clocks = append(t.Clocks, clockGaps(all)...)
	t.layOut()
	t.Summary.Jobs, t.Summary.Done = in.Unlisted, in.Unlisted
	t.sumUp(in.List.Progress())
	return t
}

type builder struct {
	in      *Input
	jobs    map[string]*Job
	results map[string]*multilock.Result
	forgot  map[string]bool // the result was removed, and nothing has happened since
	over    map[key]bool    // acquisitions that ended
}

func (b *builder) job(name string) *Job {
	j := b.jobs[name]
	if j == nil {
		j = &Job{Name: name, Runs: []Run{}}
		if of, slot, ok := lockgroup.ParseSlotName(name); ok {
			j.SlotOf, j.Slot = of, slot
		}
		if jobs, ok := joblist.ParseChunkName(name); ok {
			j.chunk, j.Left = true, jobs.To-jobs.From+1
		}
		j.listed = b.in.List != nil && j.chunk
		b.jobs[name] = j
	}
	return j
}

// count counts the events that are not runs.
func (b *builder) count(t *Timeline) {
	for _, e := range b.in.Events {
		if Ends(e) {
			b.over[key{e.Name, e.Token}] = true
		}
		switch e.What {
		case source.EventRefused:
			b.job(e.Name).Refused++
			t.Summary.Refused++
		case source.EventBroke:
			t.Summary.TakenOver++
		case source.EventLost:
			t.Summary.Lost++
		case source.EventForgot:
			b.forgot[e.Name] = true
		case source.EventAcquired, source.EventCommitted:
			b.forgot[e.Name] = false
		}
	}
}

// missedOf counts the ticks that had no run before one of these runs. All attempts at a tick carry
// the same count.
func missedOf(runs []Run) (n int) {
	seen := map[time.Time]bool{}
	for i := range runs {
		if tick := runs[i].Tick.UTC(); runs[i].Missed > 0 && !seen[tick] {
			seen[tick] = true
			n += runs[i].Missed
		}
	}
	return n
}

// schedule sets how often the job is to run, and how many ticks have passed since its last run.
func (b *builder) schedule(job *Job) {
	r := b.results[job.Name]
	if r == nil || r.Tick.IsZero() {
		return
	}
	every, err := lockgroup.ParseEvery(r.Every)
	if err != nil || every.IsZero() {
		return
	}
	job.recurs = &recurrence{every, every.Missed(b.in.Made, *r)}
}

// hold adds a held lock. The history or the result may be newer than the lock's inspection.
func (b *builder) hold(h lockgroup.Holding) {
	job, seen := b.job(h.Name), h.Observation
	token := seen.Record.Token
	if token != "" && (b.over[key{h.Name, token}] || b.concluded(h.Name, token)) {
		return
	}
	state := Running
	if seen.State == multilock.StateDead {
		state = Dead
	}
	if job.chunk && state == Running { // its jobs are counted as claimed: which of them run is not known
		job.claimed = fmt.Sprintf("claimed by %s: %s", seen.Record.Holder, seen.Why)
		return
	}
	last := &Run{}
	if n := len(job.Runs); n > 0 && job.Runs[n-1].Token == token && token != "" {
		last = &job.Runs[n-1]
	}
	if last.State == Open || job.chunk && last.Token != "" {
		last.State, last.Why, last.End = state, seen.Why, time.Time{}
		return
	}
	holder := seen.Record.Holder
	r := Run{
		Host: holder.Host, Machine: holder.Machine, PID: max(holder.PID, 0), User: holder.User, Command: holder.Command, Token: token,
		State: state, Why: seen.Why, Start: b.acquiredAt(seen),
	}
	if last.Attempt > 0 { // the earlier attempt ran under the same lock
		r.Start, r.Attempt = later(r.Start, last.End), last.Attempt+1
	}
	job.Runs = append(job.Runs, r)
}

// concluded reports whether the job has a result, so that nothing more happens under its lock.
func (b *builder) concluded(name, token string) bool {
	if r := b.results[name]; r != nil {
		return r.Token == token && (r.Final || r.Chunk == nil && r.OK())
	}
	runs := b.jobs[name].Runs
	return len(runs) > 0 && runs[len(runs)-1].Token == token && runs[len(runs)-1].State == Done
}

// acquiredAt returns when the lock was acquired, by the holder's clock if that is known.
func (b *builder) acquiredAt(seen multilock.Observation) time.Time {
	switch {
	case !seen.Record.Prepared.IsZero():
		return seen.Record.Prepared
	case seen.Age != source.Unknown:
		return b.in.Made.Add(-seen.Age)
	}
	return time.Time{}
}

// result adds a run unless the history already has it.
func (b *builder) result(r *multilock.Result) {
	job := b.job(r.Name)
	b.results[r.Name] = r
	if r.Foreign != "" {
		return
	}
	for i := range job.Runs {
		if run := &job.Runs[i]; run.Token == r.Token && run.Attempt == r.Attempt && run.Exit != nil && (run.Tick.IsZero() || run.Tick.Equal(r.Tick)) {
			run.Output = r.Output
			return
		}
	}
	exit := r.Exit
	job.Runs = append(job.Runs, Run{
		Host: r.By.Host, Machine: r.By.Machine, PID: r.By.PID, User: r.User, State: stateOfExit(&exit), Start: r.Start, End: r.Start.Add(r.Duration),
		Attempt: r.Attempt, Exit: &exit, Signal: r.Signal, Why: r.Why, Output: r.Output, Command: r.Command, Token: r.Token,
		Tick: r.Tick, Missed: r.Missed,
	})
}

// chunk adds the jobs of a chunk whose results were read, except those before Since. One run stands
// for all other jobs.
func (b *builder) chunk(r *multilock.Result) {
	b.results[r.Name] = r
	listed := 0
	for _, job := range r.Chunk.Jobs {
		attempts := job.Attempts(*r)
		if attempts[len(attempts)-1].OK() {
			listed++
		}
		for i := range attempts {
			if a := &attempts[i]; !a.Start.Add(a.Duration).Before(b.in.Since) {
				b.job(job.Name).listed = b.in.List != nil
				b.result(a)
			}
		}
	}
	if rest := r.Chunk.Done - listed; rest > 0 {
		job := b.job(r.Name)
		job.Done = rest
		job.Runs = append(job.Runs, Run{
			Host: r.By.Host, Machine: r.By.Machine, PID: r.By.PID, User: r.User, State: Done, Start: r.Start, End: r.Start.Add(r.Duration), Token: r.Token,
		})
	}
}

// conclude sets the state of a job: its recorded result wins over its last run.
func (b *builder) conclude(job *Job, r *multilock.Result) {
	for i := range job.Runs {
		job.Runs[i].clearImplausible()
	}
	slices.SortStableFunc(job.Runs, func(x, y Run) int { return cmp.Compare(x.order(), y.order()) })
	if n := len(job.Runs); n > 0 {
		last := job.Runs[n-1]
		job.State, job.Attempt, job.Why, job.Output, job.Command = last.State, last.Attempt, last.Why, last.Output, last.Command
	}
	if r != nil && r.Chunk != nil {
		c := r.Chunk
		job.Left = c.To - c.From + 1 - c.Recorded - c.Removed - c.GivenBack()
	}
	switch {
	case job.claimed != "":
		job.State, job.Why = Running, job.claimed
	case job.State == Running:
	case r != nil && r.Foreign != "":
		job.State, job.Why = Unknown, r.Foreign
	case r != nil && r.Chunk != nil:
		if job.Left == 0 || job.State != Dead && job.State != Lost {
			job.State, job.Why = Done, ""
		}
	case r != nil:
		job.State, job.Attempt, job.Why, job.Output, job.Command = stateOfResult(r), r.Attempt, r.Why, r.Output, r.Command
	case b.in.Recorded[job.Name]:
		job.State, job.Why = Done, "" // not read, because the history shows its success
	case b.forgot[job.Name]:
		job.State = Deleted
	case job.State == "":
		job.State = Released // only failed acquisitions
	}
	if job.chunk {
		job.Why = strings.TrimSuffix(fmt.Sprintf("%d done, %d left: %s", job.Done, job.Left, job.Why), ": ")
	}
}

// Ends reports whether an event ends an acquisition.
func Ends(e source.Event) bool {
	return e.What == source.EventReleased || e.What == source.EventLost || e.What == source.EventBroke
}

// Unended returns the acquisitions, by name and token, that have no end among the events.
func Unended(events []source.Event) map[[2]string]bool {
	open := map[[2]string]bool{}
	for _, e := range events {
		switch k := [2]string{e.Name, e.Token}; {
		case e.What == source.EventAcquired:
			open[k] = true
		case Ends(e):
			delete(open, k)
		}
	}
	return open
}

func stateOfResult(r *multilock.Result) State {
	switch {
	case r.OK():
		return Done
	case r.Final:
		return Failed
	}
	return Retry
}

// clearImplausible clears implausible times from other programs. JSON has no years above 9999.
func (r *Run) clearImplausible() {
	times := []*time.Time{&r.Start, &r.End}
	if r.Broken != nil {
		times = append(times, &r.Broken.Time)
	}
	for _, t := range times {
		if t.Year() < 1970 || t.Year() > 9999 {
			*t = time.Time{}
		}
	}
}

// order sorts runs by their end; running ones come last.
func (r *Run) order() int64 {
	switch {
	case r.State == Running:
		return 1<<63 - 1
	case !r.End.IsZero():
		return r.End.UnixNano()
	}
	return r.Start.UnixNano()
}
