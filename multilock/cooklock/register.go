package cooklock

import "github.com/multilock/go/multilock/source"

// Register is where a cooking lock lives. It needs nothing else of the system that its hosts have
// in common.
type Register = source.Register

// MaxValue is the largest value in bytes that a Register has to hold.
const MaxValue = 3000
