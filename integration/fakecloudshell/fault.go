package fakecloudshell

import (
	"sync/atomic"
	"time"
)

// Fault is what happens to one request. The zero value is no fault. A call with an invalid token is
// never executed, whatever the fault says.
type Fault struct {
	// Hold, if not nil, delays the execution of the request until it is closed. The request is then
	// executed even if its client has disconnected.
	Hold <-chan struct{}
	// Execute says whether and when the request is executed. If it is not executed at once, its reply,
	// if any, reports success.
	Execute Execution
	// Later is the delay of an execution OnceGone; if 0, Server.Land executes the request.
	Later time.Duration
	// Reply says how the reply is delivered.
	Reply Reply
	// Status, if not 0, replaces the reply with an HTTP error, such as 503.
	Status int
	// Failure replaces the real result.
	Failure *Failure
}

// Execution says when a request is executed.
type Execution int

// The values of Execution.
const (
	AtOnce Execution = iota
	Never
	// OnceGone is after the client got its reply or was cut off: after Fault.Later, or when Server.Land
	// is called. The token is not checked again.
	OnceGone
)

// Reply says how a reply is delivered.
type Reply int

// The values of Reply.
const (
	Whole Reply = iota
	// Dropped: the connection is closed without a reply.
	Dropped
	// Torn: the connection is closed in the middle of the reply.
	Torn
	// Withheld: there is no reply until the client disconnects.
	Withheld
)

// Call is a request, as an Injector sees it.
type Call struct {
	Method Method
	User   string // the token's user; empty without a valid token
	Body   string
}

// Injector decides what happens to a request. It is called concurrently.
type Injector func(Call) Fault

// At returns a fault of the nth call of a method, counted from now on: of every call if nth is 0, and
// of calls of all methods if method is "".
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
