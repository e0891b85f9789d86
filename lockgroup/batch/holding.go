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

// holding is a unit that this process holds. Its fields are guarded by the mutex of hands,
// but for those that never change.
type holding struct {
	unit  int
	lock  *multilock.Lock
	fence uint64 // what its jobs are given; 0 if nothing

	jobs     []source.ChunkJob // what is recorded of its jobs, and what is to be, in their order
	returned []source.Range
	parts    []unit // what is given back with the next record
	last     multilock.Result
	fresh    []attempt // not recorded yet
	since    time.Time // since when the first of them is not
	urgent   bool      // they are to be recorded at once
	// inherited says that the record is still that of the holder before: who has a part of it
	// goes by whose it is.
	inherited bool
	waiting   int // jobs of it that wait for a worker
	running   int
	// stopped is why no more of its jobs are begun; nil as long as they are. With lingering
	// the lock is left to its TTL.
	stopped   error
	lingering bool
	dead      bool // nothing can be recorded any more
	recorded  bool // something was
	begun     time.Time
	told      time.Time // when the others were told of it
}

// attempt is an attempt that has ended.
type attempt struct {
	job    int
	result multilock.Result
}

// claimAll claims units as they are needed, until nothing is left or the taking ends.
func (b *Batch) claimAll() {
	for {
		i, err := b.hands.toClaim(b.taking)
		if err != nil {
			return
		}
		b.under.Go(func() { b.claim(i) })
	}
}

// claim tries to take a unit, and sees it to its end.
func (b *Batch) claim(i int) {
	start := time.Now()
	u := b.unit(i)
	h, err := b.hold(i, u)
	b.hands.change(func() {
		b.hands.coming -= u.length()
		if err == nil {
			b.hands.claimTime.add(time.Since(start))
			b.hands.went()
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
		b.hands.change(func() { b.hands.set(i, unitElsewhere) })
		return
	case errors.Is(err, errDone):
		err = nil
	}
	b.conclude(i, err)
}

var (
	// errDone says of a unit that others have done it.
	errDone = errors.New("it is done")
	// errRecorded says of a part that it has a result: somebody has it, or had it.
	errRecorded = errors.New("somebody has recorded something of it")
	// errTakenBack says of a part that the record by which it was given back is forgotten, or
	// may be: its jobs are to be done under the lock of the whole again.
	errTakenBack = errors.New("it is not given back any more")
)

// takenByOthers asks the board whether a unit is done, if there are others; of a part, of which
// that does not tell until all are done, whether it is recorded. One whose record was read, and
// which nobody held then, is to be had.
func (b *Batch) takenByOthers(i int, u unit) error {
	switch {
	case b.chunks == nil || !b.hasCompany():
		return nil
	case u.of.From > 0 && !u.left && b.recorded.has(b.taking, b.src, b.name(&u)):
		return errRecorded
	case u.of.From == 0 && b.board.age() >= boardFresh:
		b.hear(b.taking)
	}
	if b.unit(i).state == unitFinal {
		return errDone
	}
	return nil
}

func (b *Batch) hasCompany() bool {
	b.hands.mu.Lock()
	defer b.hands.mu.Unlock()
	return b.hands.company
}

// hold takes the lock of a unit and learns what is recorded of it.
func (b *Batch) hold(i int, u unit) (h *holding, err error) {
	if err := b.takenByOthers(i, u); err != nil {
		return nil, err
	}
	lock, err := multilock.TryOnce(b.taking, b.src, b.name(&u), b.terms(&u))
	if err != nil {
		return nil, err
	}
	h = &holding{unit: i, lock: lock, begun: time.Now(), told: time.Now()}
	if err = b.learn(h, u); err != nil {
		_ = lock.Release(context.WithoutCancel(b.taking))
		return nil, err
	}
	if b.board != nil && b.board.saysDone(u.root) && b.unit(i).state != unitFinal {
		b.note(b.board.tell(b.taking, u.root)) // what it says is left of a result that was forgotten
	}
	return h, nil
}

// terms are those of a unit's lock.
func (b *Batch) terms(u *unit) multilock.Terms {
	opt := multilock.Options{TTL: b.opt.TTL, Poll: b.opt.Poll, StalePolicy: b.opt.StalePolicy, User: b.opt.User, Batch: b.opt.Batch, Command: b.describe(u)}
	if b.opt.Processes {
		return multilock.ForJob{Options: opt}
	}
	return opt
}

// describe says for people what a lock is held for.
func (b *Batch) describe(u *unit) string {
	if u.From == u.To {
		return cmp.Or(b.jobs[u.From-1].Shown, b.jobs[u.From-1].Command)
	}
	return describeChunk(u.Range, len(b.jobs))
}

// learn reads what is recorded of a unit, under its lock, and draws its fencing number.
func (b *Batch) learn(h *holding, u unit) error {
	if err := b.checkPart(u); err != nil {
		return err
	}
	last, err := h.lock.Outcome(b.taking) // which finds that the lock is held, also since that
	switch {
	case errors.Is(err, multilock.ErrNoResult):
	case err != nil:
		return err
	default:
		if b.absorb(h.unit, last); b.unit(h.unit).state == unitFinal {
			b.hands.change(b.hands.met) // who was faster than the news
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

// checkPart asks whether a part is still said to be given back, by a record that nobody is
// about to forget: he would have the lock of the whole, which he took before that of the
// part, and that of the part, which is ours now. A holder who works on the whole has
// written the record himself.
func (b *Batch) checkPart(u unit) error {
	if u.of.From == 0 {
		return nil
	}
	whole := joblist.ChunkName(u.of)
	seen, err := multilock.Inspect(b.taking, b.src, whole, b.opt.StalePolicy)
	if err != nil {
		return err
	}
	r, err := bounded.Call(b.taking, func(ctx context.Context) (multilock.Result, error) { return b.chunks.Current(ctx, whole) })
	switch {
	case errors.Is(err, multilock.ErrNoResult), err == nil && (r.Chunk == nil || !slices.Contains(r.Chunk.Returned, u.Range)):
		return errTakenBack
	case err == nil && seen.State != multilock.StateFree && seen.Record.Token != r.Token:
		return errTakenBack
	}
	return err
}

// takenBack leaves a part to the unit of which it was given back, for now.
func (b *Batch) takenBack(i int) {
	b.hands.change(func() {
		u := b.hands.units[i]
		if b.hands.openIn(&u) == 0 {
			b.hands.set(i, unitFinal)
			return
		}
		b.hands.units[i].retracted = true
		b.hands.set(i, unitElsewhere) // it may be one again
		b.hands.reopen(u.of, u.root)
	})
}

// begin makes the jobs of a holding that are left ready, behind those that are. The caller
// holds the mutex.
func (b *Batch) begin(h *holding) {
	for _, job := range b.left(h) {
		next := 1
		if last, known := b.lastOf(h, job); known {
			next = b.plan.Again(last).Attempt
		}
		b.hands.ready = append(b.hands.ready, task{job: job, number: next, holding: h})
		h.waiting++
	}
	h.inherited = len(h.returned) > 0 && h.waiting > 0
	if h.waiting == 0 {
		b.hands.set(h.unit, unitFinal) // also where a result was forgotten that was learned before
	}
}

// left are the jobs of a holding that are to be run, by their places in the list.
func (b *Batch) left(h *holding) (jobs []int) {
	u := &b.hands.units[h.unit]
	for i := u.From - 1; i < u.To; i++ {
		back := slices.ContainsFunc(h.returned, func(r source.Range) bool { return r.From <= i+1 && i+1 <= r.To })
		if b.hands.state[i] == jobOpen && !back {
			jobs = append(jobs, i)
		}
	}
	if b.opt.Order == OrderRandom {
		shuffle(jobs)
	}
	return jobs
}

// lastOf is what is recorded of a job of a holding.
func (b *Batch) lastOf(h *holding, job int) (multilock.Result, bool) {
	if b.chunks == nil {
		return h.last, h.last.Attempt > 0
	}
	at, known := slices.BinarySearchFunc(h.jobs, job+1, func(j source.ChunkJob, n int) int { return cmp.Compare(j.Number, n) })
	if !known {
		return multilock.Result{}, false
	}
	return h.jobs[at].Result(h.last), true
}

// meet is for a unit that somebody else holds. Who else is at work one listing tells.
func (b *Batch) meet(i int) {
	var held []string
	if b.chunks != nil {
		held, _ = bounded.Call(b.taking, b.src.Names) // else one is met after the other
	}
	b.hands.change(func() {
		b.hands.set(i, unitElsewhere)
		b.hands.met()
		at := map[string]bool{}
		for _, name := range held {
			at[name] = true
		}
		if len(at) == 0 {
			return
		}
		for k := b.hands.next; k < len(b.hands.units); k++ {
			if u := &b.hands.units[k]; u.state == unitOpen && at[b.name(u)] {
				b.hands.set(k, unitElsewhere)
			}
		}
	})
}

// inherit is what an earlier holder has recorded of jobs, for the records of another.
func inherit(last multilock.Result) []source.ChunkJob {
	jobs := slices.Clone(last.Chunk.Jobs)
	for i := range jobs {
		jobs[i] = jobs[i].On(last.By.Host)
	}
	return jobs
}

// conclude notes what has become of a unit that was tried, and held.
func (b *Batch) conclude(i int, err error) {
	state := unitOpen
	switch {
	case err == nil:
	case b.ends(err):
		b.stops.drain(err)
	case b.taking.Err() == nil:
		state = unitElsewhere // or in doubt, and to be looked at
	}
	b.hands.change(func() { b.hands.set(i, state) })
}
