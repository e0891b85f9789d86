package remote

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"github.com/multilock/go/multilock/source"
)

// Content is what a register holds: a value, and the number of the swap that put it there. The zero
// Content is that of a register that nobody has used.
type Content struct {
	Value  []byte // nil if nobody has used it
	Number uint64
}

// Cell is where a server keeps a register.
type Cell interface {
	// Replace puts a value where exactly this still stands, with the next number, and returns what is
	// there then. It may be carried out several times, or late: doubt says that it may have been
	// without an answer, or may still be.
	Replace(ctx context.Context, this Content, value []byte) (now Content, doubt bool, err error)
	Read(ctx context.Context) (Content, error)
}

// Register makes a set-and-get of a compare-and-set: the register of a cooking lock. It remembers
// what it saw last, so that a swap right after a look is one request. It is safe for concurrent use.
type Register struct {
	cell Cell

	mu   sync.Mutex
	seen Content
	read bool
}

var _ source.Register = (*Register)(nil)

// NewRegister is the register that a cell keeps.
func NewRegister(cell Cell) *Register { return &Register{cell: cell} }

var errReplaced = errors.New("the answer to the swap was lost, and others have swapped since: it was made before, or never")

// Peek returns what the register holds, and the number of the swap that put it there; nil and 0 if
// nobody ever swapped.
func (r *Register) Peek(ctx context.Context) (value []byte, n uint64, err error) {
	now, err := r.cell.Read(ctx)
	if err != nil {
		return nil, 0, err
	}
	r.saw(now)
	return now.Value, now.Number, nil
}

// Swap puts value, which nobody has ever put there, into the register, and returns what was there
// before, and the number of this swap. What a request replaces it names, number and value: so it is
// made once, however often it comes to be carried out, and a value that is there is proof that it was.
// The error wraps source.ErrUnsure if it may have been made, or may still be.
func (r *Register) Swap(ctx context.Context, value []byte) (old []byte, n uint64, err error) {
	value = append([]byte{}, value...)
	before, err := r.last(ctx)
	for err == nil {
		var now Content
		var doubt bool
		now, doubt, err = r.cell.Replace(ctx, before, value)
		switch {
		case err == nil && bytes.Equal(now.Value, value) && now.Number == before.Number+1:
			r.saw(now)
			return before.Value, now.Number, nil
		case err == nil && doubt:
			err = errors.Join(source.ErrUnsure, errReplaced)
		case doubt:
			err = errors.Join(source.ErrUnsure, err)
		case err == nil:
			before, err = now, ctx.Err() // somebody else has swapped
		}
	}
	return nil, 0, err
}

func (r *Register) saw(now Content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.read = now, true
}

// last is what was seen last.
func (r *Register) last(ctx context.Context) (Content, error) {
	r.mu.Lock()
	seen, read := r.seen, r.read
	r.mu.Unlock()
	if read {
		return seen, nil
	}
	_, _, err := r.Peek(ctx)
	if err != nil {
		return Content{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen, nil
}
