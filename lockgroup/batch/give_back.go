package batch

import (
	"time"

	"github.com/multilock/go/multilock/source"
)

// giveBack gives back half of the jobs that will not begin soon, for an idle host. Other hosts do the
// same, and the idle host asks again if it needs more.
func (q *schedule) giveBack() {
	q.change(func() {
		if q.throttle.busy != "" {
			q.giveAllBack()
			return
		}
		for n := (q.surplus() + 1) / 2; n > 0; n-- {
			t := q.ready[len(q.ready)-1]
			if _, tried := t.holding.lastOf(t.job); tried {
				return
			}
			q.ready = q.ready[:len(q.ready)-1]
			t.holding.waiting--
			t.holding.giveBack(t.job+1, &q.units[t.holding.unit])
		}
	})
}

// soon is the time within which a job must begin, or else it may be given back.
const soon = 5 * time.Second

// surplus returns the number of ready jobs that will not begin soon.
func (q *schedule) surplus() int {
	if q.throttle.busy != "" {
		return len(q.ready)
	}
	return max(0, len(q.ready)-int(soon*time.Duration(q.running+q.wanting())/max(q.took(), 1)))
}

// partsShare divides the largest chunk to bound the size of a part.
const partsShare = 8

// giveBack adds a job to the parts of a holding: to the last part if that is adjacent and small
// enough. A whole unit is never given back as a part, which would have the unit's own name; its lock is
// released instead.
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

// giveAllBack gives back all jobs that a busy host has not begun: as parts if the unit has a running
// job, otherwise by releasing the lock. A job to retry stays with its unit, whose record has the
// failure. The caller holds the mutex.
func (q *schedule) giveAllBack() {
	for len(q.ready) > 0 {
		last := len(q.ready) - 1
		t := q.ready[last]
		if t.holding.running == 0 {
			q.takeBack(t.holding)
			continue
		}
		q.ready = q.ready[:last]
		t.holding.waiting--
		if _, tried := t.holding.lastOf(t.job); !tried {
			t.holding.giveBack(t.job+1, &q.units[t.holding.unit])
		}
	}
}

// takenBack returns a part to its unit for now.
func (q *schedule) takenBack(i int) {
	q.change(func() {
		u := q.units[i]
		if q.openIn(&u) == 0 {
			q.set(i, unitFinal)
			return
		}
		q.units[i].retracted = true
		q.set(i, unitElsewhere) // it may be given back again
		q.reopen(u.of, u.root)
	})
}
