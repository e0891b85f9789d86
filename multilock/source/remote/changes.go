package remote

import (
	"errors"
	"fmt"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// ErrAgain means that a request had no effect because of a concurrent change, and should be
// retried.
var ErrAgain = fmt.Errorf("repeated attempts failed: %w", source.ErrPassing)

// MaxAgain is the maximum number of tries after ErrAgain.
const MaxAgain = 4

// Changes makes a holder's changes of what is stored under its lock, one at a time. Each change has
// a number, and its condition is the revision that the previous change left (a source may use the
// number of that change as the revision). So it takes effect once, however often it is sent: if its
// reply was lost, it finds its own number when it is sent again, and a delayed request cannot undo
// a later change.
type Changes struct {
	mu     sync.Mutex
	stored Record
	drawn  int64 // the number of the last change
	left   int64 // the last revision that a change is known to have left
}

// NewChanges returns the Changes of a record that was stored, and the revision that this left.
func NewChanges(stored Record, left int64) *Changes { return &Changes{stored: stored, left: left} }

// Change is one change.
type Change struct {
	Record Record // the new record: its Step is the number of the change
	Before int64  // the revision that the previous change left: the condition
	Result []byte // a result to store, nil for none
	Forget bool   // remove the stored result
}

// Shown is what one try of a change showed of the lock.
type Shown struct {
	Mine  bool  // the lease holds the lock
	Step  int64 // the number of the last change that took effect
	Left  int64 // the revision that it left, the condition of the next change
	Done  bool  // if not Mine: other data proves that this change took effect before
	Doubt bool  // the reply was lost: this try may have taken effect, or may still do so
}

// Make makes a change, which set describes. try makes it on the condition that the lock is as the
// previous change left it. Make returns the revision that this change left. The error is that of an
// ended lease, source.ErrLost with the cause gone, or try's: with source.ErrUnsure if the change
// may have taken effect.
func (c *Changes) Make(h *Holding, gone error, set func(*Change), try func(Change) (Shown, error)) (left int64, err error) {
	if err := h.Ended(); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drawn++
	next, doubt := Change{Record: c.stored}, false
	next.Record.Step = c.drawn
	set(&next)
	for again := 0; again < MaxAgain && err == nil; again++ {
		var shown Shown
		next.Before = c.left
		shown, err = try(next)
		doubt = doubt || shown.Doubt
		switch {
		case err != nil:
		case !shown.Mine && shown.Done && doubt:
			return c.left, nil
		case !shown.Mine:
			return 0, h.Lost(gone)
		default:
			c.left = shown.Left
		}
		if err == nil && shown.Step == c.drawn {
			c.stored = next.Record
			return c.left, nil
		}
	}
	if err == nil {
		err = ErrAgain
	}
	if doubt {
		err = errors.Join(source.ErrUnsure, err)
	}
	return 0, err
}
