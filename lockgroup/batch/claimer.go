package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/internal/joblist"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// claimer claims units, and takes over those of dead hosts.
type claimer struct {
	*common
	exchange *exchange
	recorder *recorder
	under    sync.WaitGroup // units that are claimed, or being claimed
}

// claimAll claims units as needed, until no job is left or the batch takes no more.
func (c *claimer) claimAll() {
	for {
		i, err := c.schedule.toClaim(c.taking)
		if err != nil {
			return
		}
		c.under.Go(func() { c.claim(i) })
	}
}

// claim tries to claim a unit, and works on it until its jobs have ended.
func (c *claimer) claim(i int) {
	start := time.Now()
	u := c.schedule.unit(i)
	h, err := c.hold(i, u)
	c.schedule.change(func() {
		c.schedule.coming -= u.length()
		if err == nil {
			c.schedule.claimTime.add(time.Since(start))
			c.schedule.went()
			c.schedule.begin(h)
			c.schedule.holding++
		}
	})
	switch {
	case err == nil:
		err = c.recorder.keep(h)
		c.schedule.change(func() { c.schedule.holding-- })
	case errors.Is(err, multilock.ErrHeld):
		c.meet(i)
		return
	case errors.Is(err, errTakenBack):
		c.schedule.takenBack(i)
		return
	case errors.Is(err, errRecorded):
		c.schedule.change(func() { c.schedule.set(i, unitElsewhere) })
		return
	case errors.Is(err, errOutdated):
		c.schedule.change(func() { c.schedule.set(i, unitBehind) })
		return
	case errors.Is(err, errDone):
		err = nil
	}
	c.conclude(i, err)
}

var (
	// errDone means that other processes have finished a unit.
	errDone = errors.New("it is done")
	// errRecorded means that a part has a result: another process holds or held it.
	errRecorded = errors.New("another process has recorded a result of it")
	// errTakenBack means that the record that gave a part back may have been deleted. The jobs then run
	// under the lock of the whole unit.
	errTakenBack = errors.New("it is no longer given back")
	// errOutdated means that a record refers to sections of the list that were not read.
	errOutdated = errors.New("the list was changed")
)

// takenByOthers checks whether a unit is done if there are other hosts. The map does not cover a part
// before its whole chunk is done, so for a part it checks for a result, unless the result was read
// when the lock was free.
func (c *claimer) takenByOthers(i int, u unit) error {
	switch {
	case !c.schedule.hasCompany():
		return nil
	case u.of.From > 0 && !u.left && c.exchange.recorded.has(c.taking, c.src, u.name()):
		return errRecorded
	case u.of.From == 0 && !c.exchange.progressMap.isFresh():
		c.exchange.poll(c.taking)
	}
	if c.schedule.unit(i).state == unitFinal {
		return errDone
	}
	return nil
}

// hold acquires the lock of a unit and reads its record.
func (c *claimer) hold(i int, u unit) (h *holding, err error) {
	if err := c.takenByOthers(i, u); err != nil {
		return nil, err
	}
	lock, err := multilock.TryOnce(c.taking, c.src, u.name(), c.terms(&u))
	if err != nil {
		return nil, err
	}
	h = &holding{unit: i, lock: lock, begun: time.Now(), reported: time.Now()}
	if err = c.learn(h, u); err != nil {
		_ = lock.Release(context.WithoutCancel(c.taking))
		return nil, err
	}
	if c.exchange.progressMap.saysDone(u.root) && c.schedule.unit(i).state != unitFinal {
		// The byte is older than the deletion of a result.
		c.exchange.note(c.exchange.progressMap.markChanged(c.taking, u.root))
	}
	return h, nil
}

// terms returns the terms of a unit's lock.
func (c *claimer) terms(u *unit) multilock.Terms {
	opt := multilock.Options{TTL: c.opt.TTL, Poll: c.opt.Poll, StalePolicy: c.opt.StalePolicy, User: c.opt.User, Batch: c.opt.Batch, Command: c.describe(u)}
	if c.opt.Processes {
		return multilock.ForJob{Options: opt}
	}
	return opt
}

// describe returns the command of a unit, for people.
func (c *claimer) describe(u *unit) string {
	if u.From == u.To {
		return cmp.Or(c.jobs[u.From-1].Shown, c.jobs[u.From-1].Command)
	}
	return describeChunk(u.Range, len(c.jobs))
}

func describeChunk(r source.Range, of int) string {
	return fmt.Sprintf("jobs %d to %d of %d", r.From, r.To, of)
}

// learn reads a unit's record under its lock, and draws its fencing number.
func (c *claimer) learn(h *holding, u unit) error {
	if err := c.checkPart(u); err != nil {
		return err
	}
	last, err := h.lock.Outcome(c.taking) // also checks that the lock is still held
	switch {
	case errors.Is(err, multilock.ErrNoResult):
	case err != nil:
		return err
	case c.outdated(last):
		return errOutdated
	default:
		if c.exchange.merge(h.unit, last); c.schedule.unit(h.unit).state == unitFinal {
			c.schedule.change(c.schedule.met) // another host was faster than its updates
		}
		if last.Chunk != nil {
			last = c.schedule.ours(&u, last)
			h.jobs, h.returned, h.fence = inherit(last), last.Chunk.Returned, last.Chunk.Fence
			h.revision = last.Chunk.Revision
		}
		h.last = last
	}
	if c.opt.Fence {
		number, err := h.lock.Fence(c.taking)
		if err != nil {
			return errors.Join(lockgroup.ErrNotRun, err)
		}
		h.fence = u.fence + number
	}
	return nil
}

// checkPart checks that the record of the whole unit still gives this part back. The record cannot
// change while the part's lock is held: a process that deletes it locks the whole unit and then the
// part. A process that works on the whole unit wrote the record itself, so the tokens are equal.
func (c *claimer) checkPart(u unit) error {
	if u.of.From == 0 {
		return nil
	}
	whole := joblist.ChunkName(u.of)
	seen, err := multilock.Inspect(c.taking, c.src, whole, c.opt.StalePolicy)
	if err != nil {
		return err
	}
	r, err := c.exchange.current(c.taking, whole)
	switch {
	case errors.Is(err, multilock.ErrNoResult), err == nil && (r.Chunk == nil || !slices.Contains(r.Chunk.Returned, u.Range)):
		return errTakenBack
	case err == nil && seen.State != multilock.StateFree && seen.Record.Token != r.Token:
		return errTakenBack
	}
	return err
}

// outdated reports whether a record refers to sections of the list that were not read.
func (c *claimer) outdated(r multilock.Result) bool {
	if r.Chunk == nil {
		return false
	}
	c.schedule.want(r.Chunk.Revision)
	return r.Chunk.Revision > c.schedule.known
}

// meet handles a unit that another process holds. One listing also finds the units of other processes.
func (c *claimer) meet(i int) {
	held, _ := bounded.Call(c.taking, c.src.Names) // after an error the other units are found one by one
	c.schedule.change(func() {
		c.schedule.set(i, unitElsewhere)
		c.schedule.met()
		at := map[string]bool{}
		for _, name := range held {
			at[name] = true
		}
		if len(at) == 0 {
			return
		}
		for k := c.schedule.next; k < len(c.schedule.units); k++ {
			if u := &c.schedule.units[k]; u.state == unitOpen && at[u.name()] {
				c.schedule.set(k, unitElsewhere)
			}
		}
	})
}

// conclude sets the state of a unit that was tried or held.
func (c *claimer) conclude(i int, err error) {
	state := unitOpen
	switch {
	case err == nil:
	case c.ends(err):
		c.stops.drain(err)
	case c.taking.Err() == nil:
		state = unitElsewhere // or unknown: inspect it later
	}
	c.schedule.change(func() { c.schedule.set(i, state) })
}
