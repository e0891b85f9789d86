package batch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// holding is a unit that this process holds. The mutex of localQueue guards its variable fields.
type holding struct {
	unit  int
	lock  *multilock.Lock
	fence uint64 // for its jobs; 0 without fencing

	jobs     []source.ChunkJob // recorded results of its jobs and those to record, in order
	returned []source.Range
	parts    []unit // given back with the next record
	last     multilock.Result
	fresh    []attempt // not recorded yet
	since    time.Time // since when the first of fresh waits
	urgent   bool      // record without delay
	// inherited means that the record is still the earlier holder's. It must be rewritten:
	// checkPart compares the record's token with the lock's.
	inherited bool
	waiting   int // its jobs that wait for a worker
	running   int
	// stopped is why no more of its jobs begin, nil while they do. With lingering, the lock is left
	// to its TTL.
	stopped   error
	lingering bool
	dead      bool // nothing can be recorded any more
	recorded  bool // something was recorded
	begun     time.Time
	reported  time.Time // when others were last informed
}

// attempt is an attempt that has ended.
type attempt struct {
	job    int
	result multilock.Result
}

// claimAll claims units as needed, until no job is left or the batch takes no more.
func (b *Batch) claimAll() {
	for {
		i, err := b.localQueue.toClaim(b.taking)
		if err != nil {
			return
		}
		b.under.Go(func() { b.claim(i) })
	}
}

// claim tries to claim a unit, and works on it to its end.
func (b *Batch) claim(i int) {
	start := time.Now()
	u := b.unit(i)
	h, err := b.hold(i, u)
	b.localQueue.change(func() {
		b.localQueue.coming -= u.length()
		if err == nil {
			b.localQueue.claimTime.add(time.Since(start))
			b.localQueue.went()
			b.begin(h)
		}
	})
	switch {
	case err == nil:
		err = b.keep(h)
	case errors.Is(err, multilock.ErrHeld):
		b.meet(i)
		return
	case errors.Is(err, errTakenBack):
		b.takenBack(i)
		return
	case errors.Is(err, errRecorded):
		b.localQueue.change(func() { b.localQueue.set(i, unitElsewhere) })
		return
	case errors.Is(err, errDone):
		err = nil
	}
	b.conclude(i, err)
}

var (
	// errDone means that others have finished a unit.
	errDone = errors.New("it is done")
	// errRecorded means that a part has a result, so that another process has or had it.
	errRecorded = errors.New("somebody has recorded something of it")
	// errTakenBack means that the record that gave a part back may have been forgotten. The jobs
	// then run under the lock of the whole unit.
	errTakenBack = errors.New("it is not given back any more")
)

// takenByOthers checks whether a unit is done if there are other hosts. The map tells nothing of a
// part before its whole chunk is done, so for a part it checks for a result, unless that was read
// when the lock was free.
func (b *Batch) takenByOthers(i int, u unit) error {
	switch {
	case !b.hasCompany():
		return nil
	case u.of.From > 0 && !u.left && b.recorded.has(b.taking, b.src, u.name()):
		return errRecorded
	case u.of.From == 0 && !b.progressMap.isFresh():
		b.poll(b.taking)
	}
	if b.unit(i).state == unitFinal {
		return errDone
	}
	return nil
}

func (b *Batch) hasCompany() bool {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	return b.localQueue.company
}

// hold acquires the lock of a unit and reads its record.
func (b *Batch) hold(i int, u unit) (h *holding, err error) {
	if err := b.takenByOthers(i, u); err != nil {
		return nil, err
	}
	lock, err := multilock.TryOnce(b.taking, b.src, u.name(), b.terms(&u))
	if err != nil {
		return nil, err
	}
	h = &holding{unit: i, lock: lock, begun: time.Now(), reported: time.Now()}
	if err = b.learn(h, u); err != nil {
		_ = lock.Release(context.WithoutCancel(b.taking))
		return nil, err
	}
	if b.progressMap.saysDone(u.root) && b.unit(i).state != unitFinal {
		b.note(b.progressMap.markChanged(b.taking, u.root)) // its byte is older than a result that was forgotten
	}
	return h, nil
}

// terms returns the terms of a unit's lock.
func (b *Batch) terms(u *unit) multilock.Terms {
	opt := multilock.Options{TTL: b.opt.TTL, Poll: b.opt.Poll, StalePolicy: b.opt.StalePolicy, User: b.opt.User, Batch: b.opt.Batch, Command: b.describe(u)}
	if b.opt.Processes {
		return multilock.ForJob{Options: opt}
	}
	return opt
}

// describe describes a unit for people.
func (b *Batch) describe(u *unit) string {
	if u.From == u.To {
		return cmp.Or(b.jobs[u.From-1].Shown, b.jobs[u.From-1].Command)
	}
	return describeChunk(u.Range, len(b.jobs))
}

// learn reads a unit's record under its lock, and draws its fencing number.
func (b *Batch) learn(h *holding, u unit) error {
	if err := b.checkPart(u); err != nil {
		return err
	}
	last, err := h.lock.Outcome(b.taking) // also checks that the lock is still held
	switch {
	case errors.Is(err, multilock.ErrNoResult):
	case err != nil:
		return err
	default:
		if b.merge(h.unit, last); b.unit(h.unit).state == unitFinal {
			b.localQueue.change(b.localQueue.met) // another host was faster than its updates
		}
		if last.Chunk != nil {
			last = b.ours(&u, last)
			h.jobs, h.returned, h.fence = inherit(last), last.Chunk.Returned, last.Chunk.Fence
		}
		h.last = last
	}
	if b.opt.Fence {
		number, err := h.lock.Fence(b.taking)
		if err != nil {
			return errors.Join(lockgroup.ErrNotRun, err)
		}
		h.fence = u.fence + number
	}
	return nil
}

// checkPart checks that the record of the whole still gives this part back. Under the part's lock
// that stays so: a process that forgets it locks the whole and then the part. A holder that works
// on the whole wrote the record itself, so the tokens are equal.
func (b *Batch) checkPart(u unit) error {
	if u.of.From == 0 {
		return nil
	}
	whole := joblist.ChunkName(u.of)
	seen, err := multilock.Inspect(b.taking, b.src, whole, b.opt.StalePolicy)
	if err != nil {
		return err
	}
	r, err := b.current(b.taking, whole)
	switch {
	case errors.Is(err, multilock.ErrNoResult), err == nil && (r.Chunk == nil || !slices.Contains(r.Chunk.Returned, u.Range)):
		return errTakenBack
	case err == nil && seen.State != multilock.StateFree && seen.Record.Token != r.Token:
		return errTakenBack
	}
	return err
}

// takenBack returns a part to its unit, for now.
func (b *Batch) takenBack(i int) {
	b.localQueue.change(func() {
		u := b.localQueue.units[i]
		if b.localQueue.openIn(&u) == 0 {
			b.localQueue.set(i, unitFinal)
			return
		}
		b.localQueue.units[i].retracted = true
		b.localQueue.set(i, unitElsewhere) // it may be given back again
		b.localQueue.reopen(u.of, u.root)
	})
}

// begin queues the remaining jobs of a holding. The caller holds the mutex.
func (b *Batch) begin(h *holding) {
	for _, job := range b.left(h) {
		next := 1
		if last, known := b.lastOf(h, job); known {
			next = b.plan.Again(last).Attempt
		}
		b.localQueue.ready = append(b.localQueue.ready, task{job: job, number: next, holding: h})
		h.waiting++
	}
	h.inherited = len(h.returned) > 0 && h.waiting > 0
	if h.waiting == 0 {
		b.localQueue.set(h.unit, unitFinal) // also after a result was forgotten
	}
}

// left returns the indexes of a holding's remaining jobs.
func (b *Batch) left(h *holding) (jobs []int) {
	u := &b.localQueue.units[h.unit]
	for i := u.From - 1; i < u.To; i++ {
		back := slices.ContainsFunc(h.returned, func(r source.Range) bool { return r.From <= i+1 && i+1 <= r.To })
		if b.localQueue.state[i] == jobOpen && !back {
			jobs = append(jobs, i)
		}
	}
	if b.opt.Order == OrderRandom {
		shuffle(jobs)
	}
	return jobs
}

// lastOf returns the recorded result of a job of a holding.
func (b *Batch) lastOf(h *holding, job int) (multilock.Result, bool) {
	at, known := slices.BinarySearchFunc(h.jobs, job+1, func(j source.ChunkJob, n int) int { return cmp.Compare(j.Number, n) })
	if !known {
		return multilock.Result{}, false
	}
	return h.jobs[at].Result(h.last), true
}

// meet handles a unit that another process holds. One listing finds the others' units, too.
func (b *Batch) meet(i int) {
	held, _ := bounded.Call(b.taking, b.src.Names) // on an error they are met one by one
	b.localQueue.change(func() {
		b.localQueue.set(i, unitElsewhere)
		b.localQueue.met()
		at := map[string]bool{}
		for _, name := range held {
			at[name] = true
		}
		if len(at) == 0 {
			return
		}
		for k := b.localQueue.next; k < len(b.localQueue.units); k++ {
			if u := &b.localQueue.units[k]; u.state == unitOpen && at[u.name()] {
				b.localQueue.set(k, unitElsewhere)
			}
		}
	})
}

// inherit returns an earlier holder's job results, for records of this process.
func inherit(last multilock.Result) []source.ChunkJob {
	jobs := slices.Clone(last.Chunk.Jobs)
	for i := range jobs {
		jobs[i] = jobs[i].On(last.By.Host)
	}
	return jobs
}

// conclude sets the state of a unit that was tried or held.
func (b *Batch) conclude(i int, err error) {
	state := unitOpen
	switch {
	case err == nil:
	case b.ends(err):
		b.stops.drain(err)
	case b.taking.Err() == nil:
		state = unitElsewhere // or unclear: inspect it later
	}
	b.localQueue.change(func() { b.localQueue.set(i, state) })
}
