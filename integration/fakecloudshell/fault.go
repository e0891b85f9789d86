package fakecloudshell

import (
	"sync/atomic"
	"time"
)

// Fault is what happens to one request. The zero value is no fault. A fault does
// not change what a call that is refused for its token does: that is not
// carried out in any case.
type Fault struct {
	// Hold keeps the request from being carried out until it is closed, if not nil. It
	// will be then, even if its client has gone away.
	Hold <-chan struct{}
	// Execute says whether, and when, the request is carried out. If it is not at
	// once, an answer that is given nevertheless says success.
	Execute Execution
	// Later is how long after the request an execution OnceGone comes; if 0, it comes when
	// Server.Land is called.
	Later time.Duration
	// Reply says how the answer is delivered.
	Reply Reply
	// Status is the HTTP status of an answer that is not the API's, such as 503.
	Status int
	// Failure is told instead of the real outcome.
	Failure *Failure
}

// Execution is when a request is carried out.
type Execution int

// The moments.
const (
	AtOnce Execution = iota
	Never
	// OnceGone is later than its client has been answered, or cut off: when Fault.Later
	// has passed, or Server.Land is called. The token counts that was valid at first.
	OnceGone
)

// Reply is how an answer is delivered.
type Reply int

// The ways.
const (
	Whole Reply = iota
	// Dropped: the connection is closed without an answer.
	Dropped
	// Torn: the connection is closed in the middle of the answer.
	Torn
	// Withheld: there is no answer, until the client goes away.
	Withheld
)

// Call is a request that a fault is to be decided for.
type Call struct {
	Method Method
	User   string // whose token it has; empty if none, or none that is valid
	Body   string
}

// Injector decides what happens to a request. It is called by many goroutines.
type Injector func(Call) Fault

// At is a fault of the nth call of a method, counted since At: of all if nth is 0, and
// of calls of every method if that is "".
func At(method Method, nth int64, fault Fault) Injector {
	var seen atomic.Int64
	return func(c Call) Fault {
		if method != "" && method != c.Method {
			return Fault{}
		}
		if now := seen.Add(1); nth == 0 || now == nth {
			return fault
		}
		return Fault{}
	}
}
