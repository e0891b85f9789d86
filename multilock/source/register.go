package source

import "context"

// Register is one cell of bytes that many share, with a single operation that
// changes it: set-and-get. A cooking lock lives in one. Methods are safe for
// concurrent use.
type Register interface {
	// Swap puts v into the register and returns what was there before, in one step.
	// It takes effect at most once, however often a request is repeated on the way:
	// values are told apart by their bytes, and none may come back.
	//
	// old is nil and n is 1 or more if nobody ever swapped before. n is this swap's
	// own number: larger than that of every swap that took effect earlier. A register
	// that does not number its swaps answers 0; its lock has no fencing numbers.
	//
	// The error wraps ErrUnsure if the swap may have taken effect, or may
	// still do so; after any other it has not, and never will. It wraps
	// ErrHeld if others swap just now, so that another attempt may succeed.
	Swap(ctx context.Context, v []byte) (old []byte, n uint64, err error)
	// Peek returns what the register holds, and the number of the swap that put it
	// there; nil and 0 if nobody ever swapped. It may answer with what was there
	// earlier, however long ago: that costs time, not safety.
	Peek(ctx context.Context) (v []byte, n uint64, err error)
}

// Registrar is implemented by a source that keeps registers beside its locks.
type Registrar interface {
	// Register is the one of a name. It asks nobody. The error is ErrInvalid for a name
	// that cannot have one.
	Register(name string) (Register, error)
	// Registers lists the names of those that were used.
	Registers(ctx context.Context) ([]string, error)
}
