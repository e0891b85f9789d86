package multilock

import (
	"context"
	"errors"
	"fmt"
	"reflect"
)

// ErrSelfWait means that a wait for a lock would never end, because the caller holds the lock: its context
// is that of the lock, or of the work in Do.
var ErrSelfWait = errors.New("the caller holds the lock itself, so this wait would never end")

// heldKey is the key of a context's innermost heldLock.
type heldKey struct{}

// heldLock is a lock under which the work of a context runs.
type heldLock struct {
	src   Source
	lock  *Lock
	outer *heldLock
}

// withHeld adds a lock to those under which the work of a context runs.
func withHeld(ctx context.Context, src Source, l *Lock) context.Context {
	outer, _ := ctx.Value(heldKey{}).(*heldLock)
	return context.WithValue(ctx, heldKey{}, &heldLock{src, l, outer})
}

// checkSelfWait returns ErrSelfWait for a lock under which the work of ctx runs. It ignores a context that
// does not end with the lock, which may belong to work that outlives the lock.
func checkSelfWait(ctx context.Context, src Source, name string) error {
	if ctx.Done() == nil || !reflect.TypeOf(src).Comparable() {
		return nil
	}
	h, _ := ctx.Value(heldKey{}).(*heldLock)
	for ; h != nil; h = h.outer {
		if h.lock.name == name && h.src == src && h.lock.keeper != nil && !h.lock.Timed() && h.lock.Remaining() > 0 {
			return fmt.Errorf("lock %q: %w", name, ErrSelfWait)
		}
	}
	return nil
}
