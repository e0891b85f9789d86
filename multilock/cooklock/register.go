package cooklock

import "github.com/multilock/go/multilock/source"

// Register stores a cooking lock. It is all that the lock needs from the system that its hosts
// share.
type Register = source.Register

// MaxValue is the size in bytes of the largest value that a Register must support.
const MaxValue = 3000
