package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// progressMap tells hosts which chunks have changed, with one byte for each chunk of the schedule
// and one before them, however many hosts there are. It only saves requests: the locks decide.
type progressMap struct {
	source.Board // nil if the source keeps none: see changedResults

	mu    sync.Mutex
	seen  []byte
	asked time.Time // when an idle host last asked for jobs
	read  time.Time
	took  time.Duration // to read it
}

const (
	// chunkDone is the byte of a chunk whose jobs have all succeeded, with complete output,
	// including the parts that were given back. Any other byte but 0 changes when there is
	// something to read.
	chunkDone = 1
	// mapFresh is the age up to which a claim does not read the map again, or mapShare times as
	// long as that takes.
	mapFresh = 250 * time.Millisecond
	mapShare = 20
)

// absent reports whether the source keeps no map.
func (p *progressMap) absent() bool { return p.Board == nil }

// openProgressMap opens the map and loads what is done. It reads the results of chunks that the map
// does not call done.
func (b *Batch) openProgressMap(ctx context.Context) error {
	b.progressMap = &progressMap{seen: make([]byte, 1+len(b.localQueue.units))}
	var known []int
	if chunks, ok := b.src.(source.Chunks); ok {
		opened, err := bounded.Call(ctx, chunks.OpenBoard)
		if err != nil {
			return err
		}
		b.progressMap.Board = opened
		if known, err = b.progressMap.updates(ctx); err != nil {
			return err
		}
	}
	names, err := bounded.Call(ctx, b.src.Results)
	if err != nil {
		return err
	}
	recorded := map[source.Range]bool{}
	for _, name := range names {
		if r, ok := joblist.ParseChunkName(name); ok {
			recorded[r] = true
		}
	}
	for _, k := range known {
		if recorded[b.unit(k).Range] { // no other process has forgotten the result
			b.markDone(k)
		}
	}
	for units := b.unfinished(recorded); len(units) > 0 && err == nil; units = b.unfinished(recorded) {
		err = b.readUnits(ctx, units)
	}
	return err
}

// unfinished takes the units of the recorded ranges that are not known to be final. Reading a unit
// may add parts, so the caller repeats this until there are none.
func (b *Batch) unfinished(recorded map[source.Range]bool) (units []int) {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	for i := range b.localQueue.units {
		u := &b.localQueue.units[i]
		if recorded[u.Range] && u.state != unitFinal {
			units = append(units, i)
		}
		delete(recorded, u.Range)
	}
	return units
}

// updates returns the chunks of the schedule whose byte has changed.
func (p *progressMap) updates(ctx context.Context) (changed []int, err error) {
	start := time.Now()
	now, err := bounded.Call(ctx, func(ctx context.Context) ([]byte, error) { return p.Read(ctx, len(p.seen)) })
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wasRead(start)
	for at, value := range now {
		if value == p.seen[at] {
			continue
		}
		if p.seen[at] = value; at == 0 {
			p.asked = p.read
		} else {
			changed = append(changed, at-1)
		}
	}
	return changed, nil
}

// wasRead notes when the map was read. The caller holds the mutex.
func (p *progressMap) wasRead(start time.Time) { p.read, p.took = time.Now(), time.Since(start) }

// changedResults stands in for the map if there is none: it lists the results, and returns the
// chunks of the schedule with one that is not known to be final. As no host can ask for jobs, each
// listing counts as such a request.
func (b *Batch) changedResults(ctx context.Context) (changed []int, err error) {
	start := time.Now()
	names, err := bounded.Call(ctx, b.src.Results)
	if err != nil {
		return nil, err
	}
	b.progressMap.mu.Lock()
	b.progressMap.wasRead(start)
	b.progressMap.asked = b.progressMap.read
	b.progressMap.mu.Unlock()
	recorded := map[string]bool{}
	for _, name := range names {
		recorded[name] = true
	}
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	for root := range len(b.progressMap.seen) - 1 {
		if u := &b.localQueue.units[root]; u.state != unitFinal && u.state != unitTaken && recorded[u.name()] {
			changed = append(changed, root)
		}
	}
	return changed, nil
}

// isFresh reports whether the map was read so recently that to read it again would not pay.
func (p *progressMap) isFresh() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.read) < max(mapFresh, mapShare*p.took)
}

func (p *progressMap) age() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.read)
}

// markChanged writes that a chunk has changed.
func (p *progressMap) markChanged(ctx context.Context, root int) error {
	return p.write(ctx, 1+root, func(last byte) byte { return max(last+1, chunkDone+1) })
}

// confirm writes that a chunk is done, if sure returns true. If another process forgets a result
// before the byte is written, it drops the map and the byte with it.
func (p *progressMap) confirm(ctx context.Context, root int, sure func(context.Context) bool) error {
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.Confirm(ctx, 1+root, chunkDone, sure)
	})
	return err
}

// saysDone returns what the map last said of a chunk.
func (p *progressMap) saysDone(root int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[1+root] == chunkDone
}

func (p *progressMap) write(ctx context.Context, at int, next func(last byte) byte) error {
	if p.absent() {
		return nil
	}
	p.mu.Lock()
	p.seen[at] = next(p.seen[at])
	value := p.seen[at]
	p.mu.Unlock()
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.Write(ctx, at, value) })
	return err
}

// markDone settles a chunk that is done according to the map. It returns false if the chunk's
// results must be read.
func (b *Batch) markDone(root int) bool {
	done := b.progressMap.saysDone(root)
	if done {
		b.localQueue.change(func() {
			for job := b.localQueue.units[root].From - 1; job < b.localQueue.units[root].To; job++ {
				b.settle(job, multilock.Result{})
			}
			b.localQueue.finish(root)
		})
	}
	return done
}

// poll reads the map and some of the changed results. It does not read all of them, to limit the
// load with many hosts, unless a result may halt the batch. It reports whether a chunk is done.
func (b *Batch) poll(ctx context.Context) (progress bool) {
	read := b.progressMap.updates
	if b.progressMap.absent() {
		read = b.changedResults
	}
	changed, err := read(ctx)
	b.note(err)
	changed = slices.DeleteFunc(changed, b.markDone)
	var some []int
	b.localQueue.change(func() {
		for _, root := range changed {
			b.unread[root] = true
		}
		for root := range b.unread { // in random order
			if b.opt.Halt.When == HaltNever && len(some) == mostRead {
				break
			}
			if delete(b.unread, root); b.localQueue.units[root].state != unitFinal {
				some = append(some, root)
			}
		}
	})
	b.note(b.readUnits(ctx, some))
	b.halt()
	return b.anyFinal(some)
}

func (b *Batch) anyFinal(units []int) bool {
	return slices.ContainsFunc(units, func(i int) bool { return b.unit(i).state == unitFinal })
}

// mostRead is how many results one poll reads.
const mostRead = 4

// pollParts reads some of the parts that other processes hold, and reports whether any is done. It
// does not read all of them, to limit the load with many waiters.
func (b *Batch) pollParts(ctx context.Context) (progress bool) {
	parts := b.othersParts()
	if len(parts) == 0 {
		return false
	}
	parts = slices.DeleteFunc(parts, func(i int) bool {
		u := b.unit(i)
		return !b.recorded.has(ctx, b.src, u.name())
	})
	parts = parts[:min(len(parts), mostRead)]
	b.note(b.readUnits(ctx, parts))
	return b.anyFinal(parts)
}

// othersParts returns the parts that other processes hold, in random order. On a busy host it
// includes free ones, which any other host may have taken.
func (b *Batch) othersParts() (parts []int) {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	for _, i := range b.localQueue.parts {
		if state := b.localQueue.units[i].state; state == unitElsewhere || state == unitOpen && b.localQueue.throttle.busy != "" {
			parts = append(parts, i)
		}
	}
	return parts
}

// readUnits reads the recorded results of units.
func (b *Batch) readUnits(ctx context.Context, units []int) error {
	return parallel.Do(parallel.Requests, len(units), func(k int) error { return b.readUnit(ctx, units[k]) })
}

// giveBack gives back half of the jobs that will not begin soon, for an idle host. Other hosts do
// the same, and the idle host asks again if that was too little.
func (b *Batch) giveBack() {
	b.localQueue.change(func() {
		if b.localQueue.throttle.busy != "" {
			b.giveAllBack()
			return
		}
		for n := (b.localQueue.surplus() + 1) / 2; n > 0; n-- {
			t := b.localQueue.ready[len(b.localQueue.ready)-1]
			if _, tried := b.lastOf(t.holding, t.job); tried {
				return
			}
			b.localQueue.ready = b.localQueue.ready[:len(b.localQueue.ready)-1]
			t.holding.waiting--
			t.holding.giveBack(t.job+1, &b.localQueue.units[t.holding.unit])
		}
	})
}

// soon is how soon a job must begin not to be given back.
const soon = 5 * time.Second

// surplus counts the ready jobs that will not begin soon.
func (q *localQueue) surplus() int {
	if q.throttle.busy != "" {
		return len(q.ready)
	}
	return max(0, len(q.ready)-int(soon*time.Duration(q.running+q.wanting())/max(q.took(), 1)))
}

// partsShare divides the largest chunk to bound the size of a part.
const partsShare = 8

// giveBack adds a job to the parts of a holding: to the last part if that is adjacent and small
// enough. A unit is never given back as one part, which would have the unit's own name; that
// happens by releasing the lock.
func (h *holding) giveBack(number int, of *unit) {
	h.urgent = true
	if len(h.fresh)+len(h.parts) == 0 {
		h.since = time.Now()
	}
	if last := len(h.parts) - 1; last >= 0 && h.parts[last].From == number+1 && h.parts[last].length() < maxChunk/partsShare {
		h.parts[last].From = number
	} else {
		h.parts = append(h.parts, unit{Range: source.Range{From: number, To: number}, of: of.Range, root: of.root, fence: h.fence})
	}
	if h.parts[0].Range == of.Range {
		h.parts = nil
	}
}

// current reads a result as the source has it now.
func (b *Batch) current(ctx context.Context, name string) (multilock.Result, error) {
	read := b.src.Result
	if chunks, ok := b.src.(source.Chunks); ok {
		read = chunks.Current
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return read(ctx, name) })
}

// readUnit reads the recorded result of a unit, if there is one.
func (b *Batch) readUnit(ctx context.Context, i int) error {
	u := b.unit(i)
	r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return b.src.Result(ctx, u.name()) })
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return nil
	case err != nil:
		return err
	}
	b.merge(i, r)
	return nil
}

const (
	// mapEvery is the shortest pause between two polls of the map: other hosts may be idle, or may
	// halt the batch. A host with jobs to give away polls once per mapJobs jobs.
	mapEvery = 2 * time.Second
	mapJobs  = 16
	// mapUnasked is the pause of other hosts, for the progress; up to mapAnyway with long jobs.
	mapUnasked = 10 * time.Second
	mapAnyway  = time.Minute
	// progressEvery is how often a change of an unfinished chunk is written.
	progressEvery = time.Minute
	// lastUpdatesTimeout bounds the last updates, in case the server is down.
	lastUpdatesTimeout = 5 * time.Second
)

// followProgressMap polls the map until the channel is closed.
func (b *Batch) followProgressMap(ctx context.Context, ended <-chan struct{}) {
	ticks := time.NewTicker(mapEvery)
	defer ticks.Stop()
	var served time.Time
	for {
		select {
		case <-ended:
			b.note(b.progressMap.close(ctx))
			return
		case <-ticks.C:
		}
		if b.progressMap.age() < b.mapPause() {
			continue
		}
		b.poll(ctx)
		if asked := b.progressMap.lastAsked(); asked != served {
			served = asked
			b.giveBack()
		}
	}
}

// mapPause returns how old the map may become.
func (b *Batch) mapPause() time.Duration {
	b.localQueue.mu.Lock()
	defer b.localQueue.mu.Unlock()
	switch {
	case b.opt.Halt.When != HaltNever:
		return 0
	case b.localQueue.surplus() > 0:
		return min(mapJobs*b.localQueue.jobTime.value/time.Duration(b.opt.Workers), mapUnasked)
	}
	return max(mapUnasked, min(b.localQueue.jobTime.value/mapJobs, mapAnyway))
}

// close closes the map, unless a call of it hangs.
func (p *progressMap) close(ctx context.Context) error {
	if p.absent() {
		return nil
	}
	_, err := bounded.Call(ctx, func(context.Context) (struct{}, error) { return struct{}{}, p.Close() })
	return err
}

func (p *progressMap) lastAsked() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// ask tells the other hosts that this host is idle, unless a host has just asked.
func (b *Batch) ask(ctx context.Context) {
	if !b.progressMap.absent() && time.Since(b.progressMap.lastAsked()) > mapEvery {
		b.note(b.progressMap.write(ctx, 0, func(last byte) byte { return last + 1 }))
	}
}

// announce writes updates on a chunk that this process holds.
func (b *Batch) announce(h *holding) {
	ctx, cancel := b.lastUpdates()
	defer cancel()
	u := b.unit(h.unit)
	switch {
	case u.Range != b.unit(u.root).Range, b.progressMap.absent():
	case len(h.last.Chunk.Returned) == 0 && succeeded(h.last):
		b.note(b.progressMap.confirm(ctx, u.root, func(ctx context.Context) bool { return h.lock.Verify(ctx) == nil }))
	default:
		b.note(b.progressMap.markChanged(ctx, u.root))
	}
	event := source.CommittedEvent(h.last, time.Now())
	_, err := bounded.Call(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, b.src.Record(ctx, []source.Event{event})
	})
	b.note(err)
}

func (b *Batch) lastUpdates() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(b.working), lastUpdatesTimeout)
}
