package fakecloudshell

import (
	"math/rand/v2"
	"net/http"
	"sync"
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
	// Later is how long after the request an execution OnceGone comes; never if 0,
	// before Server.Land is called.
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

// Odds are the probabilities of faults.
type Odds struct {
	Lost        float64 // carried out, and the connection closed
	Failed      float64 // carried out, and answered with 500
	Dropped     float64 // not carried out, and the connection closed
	Unavailable float64 // not carried out, and answered with 503
	Late        float64 // the connection closed, and carried out up to Later after that
	Later       time.Duration
}

// Random draws each call's fault. One seed gives one sequence of faults; which
// call gets which one depends on the order in which they come.
func Random(seed uint64, odds Odds) Injector {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(Call) Fault {
		mu.Lock()
		defer mu.Unlock()
		return odds.draw(rng)
	}
}

func (o Odds) draw(rng *rand.Rand) Fault {
	drawn := rng.Float64()
	for _, odd := range []struct {
		p float64
		Fault
	}{
		{o.Lost, Fault{Reply: Dropped}},
		{o.Failed, Fault{Status: http.StatusInternalServerError}},
		{o.Dropped, Fault{Execute: Never, Reply: Dropped}},
		{o.Unavailable, Fault{Execute: Never, Status: http.StatusServiceUnavailable}},
		{o.Late, Fault{Execute: OnceGone, Reply: Dropped, Later: 1 + time.Duration(rng.Float64()*float64(o.Later))}},
	} {
		if drawn < odd.p {
			return odd.Fault
		}
		drawn -= odd.p
	}
	return Fault{}
}
