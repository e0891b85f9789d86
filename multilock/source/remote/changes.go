package remote

import (
	"errors"
	"fmt"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// ErrAgain says that something was not carried out because things had changed, and is worth another try.
var ErrAgain = fmt.Errorf("it was tried again and again, in vain: %w", source.ErrPassing)

// MaxAgain bounds how often that is made.
const MaxAgain = 4

// Changes are those that a holder makes of what is stored under its lock, one at a time. Each has
// a number, and asks for what the one before has left. So it is made once, however often it has to be
// sent: one that was carried out without an answer finds its own number when it comes again, and one
// that was delayed on the way cannot undo a later one.
type Changes struct {
	mu     sync.Mutex
	stored Record
	drawn  int64 // the number of the last change
	left   int64 // what the last one that was made has left, as far as is known
}

// NewChanges are those of a record that was stored, and has left something.
func NewChanges(stored Record, left int64) *Changes { return &Changes{stored: stored, left: left} }

// Change is one of them.
type Change struct {
	Record Record // as it is then: its Step is the number of the change
	Before int64  // what the change before has left, which this one asks for
	Result []byte // the result that is stored with it, nil for none
	Forget bool   // the result that there is goes with it
}

// Shown is what one try to make a change has shown of the lock.
type Shown struct {
	Mine  bool  // it is this lease's
	Step  int64 // the number of the last change that was made
	Left  int64 // what that one has left, and the next one has to ask for
	Done  bool  // of another's lock: something else shows that this change was made before
	Doubt bool  // this try may have been carried out without an answer, or may still be
}

// Make makes a change, which set describes, and try makes if it finds what the change before has
// left. It returns what this one has left. The error is that of the end of the lease,
// source.ErrLost because of gone, or try's: with source.ErrUnsure if the change may have been made.
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
