package source

import "context"

// Register is a shared cell of bytes with a single operation that changes it: set-and-get. A
// cooking lock uses one. Methods are safe for concurrent use.
type Register interface {
	// Swap stores v and returns the previous value, in one step. It takes effect at most once,
	// however often a request is repeated: values are distinguished by their bytes, and no value
	// may be used twice.
	//
	// old is nil and n is 1 or more if there was no swap before. n is this swap's own number:
	// larger than that of every swap that took effect earlier. A register that does not number its
	// swaps returns 0; its lock has no fencing tokens.
	//
	// The error wraps ErrUnsure if the swap may have taken effect, or may still do so; after any
	// other error it has not, and never will. It wraps ErrHeld if concurrent swaps prevented this
	// one, so that another attempt may succeed.
	Swap(ctx context.Context, v []byte) (old []byte, n uint64, err error)
	// Peek returns the current value and the number of the swap that stored it; nil and 0 if there
	// was no swap. The value may be outdated by any time: that costs time, not safety.
	Peek(ctx context.Context) (v []byte, n uint64, err error)
}

// Registrar is implemented by a source that has registers in addition to locks.
type Registrar interface {
	// Register returns the register with a name. It sends no request. The error is ErrInvalid for a
	// bad name.
	Register(name string) (Register, error)
	// Registers lists the names of used registers.
	Registers(ctx context.Context) ([]string, error)
}
