package fakecloudshell

import (
	"math/rand/v2"
	"net/http"
	"sync"
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

// Rule is a fault of some calls.
type Rule struct {
	Method Method // of every method if empty
	// Nth is which of the calls that fit it strikes, from 1, counted since Rules; 0
	// is all of them.
	Nth   int
	Fault Fault
}

// Rules gives a call the fault of the first rule that strikes it.
func Rules(rules ...Rule) Injector {
	var mu sync.Mutex
	seen := make([]int, len(rules))
	return func(c Call) Fault {
		mu.Lock()
		defer mu.Unlock()
		fault, struck := Fault{}, false
		for i, rule := range rules {
			if rule.Method != "" && rule.Method != c.Method {
				continue
			}
			seen[i]++
			if !struck && (rule.Nth == 0 || rule.Nth == seen[i]) {
				fault, struck = rule.Fault, true
			}
		}
		return fault
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
