package batch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/internal/parallel"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// exchange reads what other hosts have recorded, and announces what this host has recorded. It only
// saves requests: the locks and results decide.
type exchange struct {
	*common
	progressMap *progressMap
	recorded    *recorded

	// The mutex of schedule guards these.
	unread  map[int]bool // chunks with unread updates
	trouble error        // the first error with updates, which do not stop the batch
}

func newExchange(c *common) *exchange {
	return &exchange{common: c, recorded: newRecorded(), unread: map[int]bool{}}
}

// open opens the map and loads the recorded results. It reads the results of chunks that are not done
// according to the map.
func (x *exchange) open(ctx context.Context) error {
	x.progressMap = &progressMap{seen: make([]byte, 1+len(x.schedule.units))}
	var known []int
	if chunks, ok := x.src.(source.Chunks); ok {
		opened, err := bounded.Call(ctx, chunks.OpenProgressMap)
		if err != nil {
			return err
		}
		x.progressMap.ProgressMap = opened
		if known, err = x.progressMap.updates(ctx); err != nil {
			return err
		}
	}
	names, err := bounded.Call(ctx, x.src.Results)
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
		if recorded[x.schedule.unit(k).Range] { // no other process has deleted the result
			x.markDone(k)
		}
	}
	for units := x.schedule.unfinished(recorded); len(units) > 0 && err == nil; units = x.schedule.unfinished(recorded) {
		err = x.readUnits(ctx, units)
	}
	return err
}

const (
	// mapEvery is the shortest pause between two polls of the map: other hosts may be idle, or may
	// halt the batch. A host with spare jobs polls once per mapJobs jobs.
	mapEvery = 2 * time.Second
	mapJobs  = 16
	// mapUnasked is the pause on other hosts, for the progress display; up to mapAnyway with long jobs.
	mapUnasked = 10 * time.Second
	mapAnyway  = time.Minute
	// progressEvery is how often a change of an unfinished chunk is written.
	progressEvery = time.Minute
	// lastUpdatesTimeout bounds the last updates, in case the server is down.
	lastUpdatesTimeout = 5 * time.Second
)

// follow polls the map until the channel is closed.
func (x *exchange) follow(ctx context.Context, ended <-chan struct{}) {
	ticks := time.NewTicker(mapEvery)
	defer ticks.Stop()
	var served time.Time
	for {
		select {
		case <-ended:
			x.note(x.progressMap.close(ctx))
			return
		case <-ticks.C:
		}
		if x.progressMap.age() < x.mapPause() {
			continue
		}
		x.poll(ctx)
		if asked := x.progressMap.lastAsked(); asked != served {
			served = asked
			x.schedule.giveBack()
		}
	}
}

// mapPause returns the allowed age of the map.
func (x *exchange) mapPause() time.Duration {
	x.schedule.mu.Lock()
	defer x.schedule.mu.Unlock()
	switch {
	case x.opt.Halt.When != HaltNever:
		return 0
	case x.schedule.surplus() > 0:
		return min(mapJobs*x.schedule.jobTime.value/time.Duration(x.opt.Workers), mapUnasked)
	}
	return max(mapUnasked, min(x.schedule.jobTime.value/mapJobs, mapAnyway))
}

// changedResults replaces the map if there is none: it lists the results, and returns the chunks of
// the schedule with a result that is not known to be final. Without a map no host can ask for jobs, so
// each listing counts as a request for jobs.
func (x *exchange) changedResults(ctx context.Context) (changed []int, err error) {
	start := time.Now()
	names, err := bounded.Call(ctx, x.src.Results)
	if err != nil {
		return nil, err
	}
	x.progressMap.mu.Lock()
	x.progressMap.wasRead(start)
	x.progressMap.asked = x.progressMap.read
	x.progressMap.mu.Unlock()
	recorded := map[string]bool{}
	for _, name := range names {
		recorded[name] = true
	}
	return x.schedule.othersRecorded(len(x.progressMap.seen)-1, recorded), nil
}

// markDone settles a chunk that is done according to the map. It returns false if the chunk's results
// must be read.
func (x *exchange) markDone(root int) bool {
	done := x.progressMap.saysDone(root)
	if done {
		x.schedule.change(func() { x.schedule.chunkDone(root) })
	}
	return done
}

// poll reads the map and some of the changed results. It does not read all of them, to limit the load
// with many hosts, unless a result may halt the batch. It reports whether a chunk is done.
func (x *exchange) poll(ctx context.Context) (progress bool) {
	read := x.progressMap.updates
	if x.progressMap.absent() {
		read = x.changedResults
	}
	changed, err := read(ctx)
	x.note(err)
	changed = slices.DeleteFunc(changed, x.markDone)
	var some []int
	x.schedule.change(func() {
		for _, root := range changed {
			x.unread[root] = true
		}
		for root := range x.unread { // in random order
			if x.opt.Halt.When == HaltNever && len(some) == mostRead {
				break
			}
			if delete(x.unread, root); x.schedule.units[root].state != unitFinal {
				some = append(some, root)
			}
		}
	})
	x.note(x.readUnits(ctx, some))
	x.halt()
	return x.anyFinal(some)
}

func (x *exchange) anyFinal(units []int) bool {
	return slices.ContainsFunc(units, func(i int) bool { return x.schedule.unit(i).state == unitFinal })
}

// mostRead is the maximum number of results that one poll reads.
const mostRead = 4

// pollParts reads results of some of the parts that other processes hold, and reports whether any part
// is done. It does not read all of them, to limit the load with many waiters.
func (x *exchange) pollParts(ctx context.Context) (progress bool) {
	parts := x.schedule.othersParts()
	if len(parts) == 0 {
		return false
	}
	parts = slices.DeleteFunc(parts, func(i int) bool {
		u := x.schedule.unit(i)
		return !x.recorded.has(ctx, x.src, u.name())
	})
	parts = parts[:min(len(parts), mostRead)]
	x.note(x.readUnits(ctx, parts))
	return x.anyFinal(parts)
}

// readUnits reads the recorded results of units.
func (x *exchange) readUnits(ctx context.Context, units []int) error {
	return parallel.Do(parallel.Requests, len(units), func(k int) error { return x.readUnit(ctx, units[k]) })
}

// readUnit reads the recorded result of a unit, if there is one.
func (x *exchange) readUnit(ctx context.Context, i int) error {
	u := x.schedule.unit(i)
	r, err := bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return x.src.Result(ctx, u.name()) })
	switch {
	case errors.Is(err, multilock.ErrNoResult):
		return nil
	case err != nil:
		return err
	}
	x.merge(i, r)
	return nil
}

// current reads a result from the source, not from a cache.
func (x *exchange) current(ctx context.Context, name string) (multilock.Result, error) {
	read := x.src.Result
	if chunks, ok := x.src.(source.Chunks); ok {
		read = chunks.Current
	}
	return bounded.Call(ctx, func(ctx context.Context) (multilock.Result, error) { return read(ctx, name) })
}

// merge merges the recorded result of a unit into local state.
func (x *exchange) merge(i int, r multilock.Result) {
	x.schedule.change(func() { x.schedule.merge(i, r) })
	x.halt()
}

// ask announces that this host is idle, unless a host has just asked for jobs.
func (x *exchange) ask(ctx context.Context) {
	if !x.progressMap.absent() && time.Since(x.progressMap.lastAsked()) > mapEvery {
		x.note(x.progressMap.write(ctx, 0, func(last byte) byte { return last + 1 }))
	}
}

// note records the first error with updates.
func (x *exchange) note(err error) {
	if err == nil || errors.Is(err, context.Canceled) || x.isEnd(err) {
		return
	}
	x.schedule.change(func() {
		if x.trouble == nil {
			x.trouble = err
		}
	})
}
