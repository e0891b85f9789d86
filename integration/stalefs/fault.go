//go:build linux

package stalefs

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// Kind is the kind of a call that changes something.
type Kind string

// The kinds of calls, by their names in RFC 1813.
const (
	Mkdir   Kind = "MKDIR"
	Create  Kind = "CREATE"
	Rename  Kind = "RENAME"
	Remove  Kind = "REMOVE"
	Rmdir   Kind = "RMDIR"
	SetAttr Kind = "SETATTR"
	Write   Kind = "WRITE"
)

// Call is a call that changes something, as one mount is about to send it.
type Call struct {
	N    int // how many the mount sent before
	Kind Kind
	Name string // the entry's; empty for SETATTR and WRITE, which name a handle
}

// Outcome is what becomes of a call, and of its reply.
type Outcome int

// The outcomes.
const (
	// Answered: nothing goes wrong.
	Answered Outcome = iota
	// Retransmitted: the call was carried out, the reply was lost, and the call is
	// carried out again, as by a server that was restarted. The caller gets the
	// second answer: ENOENT for RENAME, REMOVE and RMDIR, EEXIST for MKDIR and an
	// exclusive CREATE. (A server that keeps the verifier of an exclusive CREATE
	// answers success: that is Answered.)
	Retransmitted
	// Lost: the call was carried out, and the caller gets Errno.
	Lost
	// Dropped: the call is never carried out, and the caller gets Errno.
	Dropped
	// Zombie: the caller gets Errno, and the call is carried out later.
	Zombie
)

func (o Outcome) String() string {
	return [...]string{"answered", "retransmitted", "lost", "dropped", "zombie"}[o]
}

// Fault is what happens to one call. The zero value is no fault.
type Fault struct {
	Outcome Outcome
	// Errno is the answer of a client that gave up: EIO on a soft mount, ETIMEDOUT
	// with softerr.
	Errno syscall.Errno
	// Before and After delay the call and its reply.
	Before, After time.Duration
	// Later is when a zombie is carried out; never if 0, before Server.Land is called.
	Later time.Duration
}

// Injector decides what happens to a call. It is called by many goroutines.
type Injector func(Call) Fault

// At is a fault of the n-th call.
func At(n int, f Fault) Injector {
	return func(c Call) Fault {
		if c.N == n {
			return f
		}
		return Fault{}
	}
}

// Odds are the probabilities of the outcomes, and the longest of the delays,
// which strike one call in four.
type Odds struct {
	Retransmitted, Lost, Dropped, Zombie float64
	Delay                                time.Duration
	Later                                time.Duration
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
	f := Fault{Outcome: o.outcome(rng.Float64()), Errno: syscall.EIO, Later: upTo(rng, o.Later)}
	if rng.IntN(2) == 0 {
		f.Errno = syscall.ETIMEDOUT
	}
	if rng.IntN(4) == 0 {
		f.Before, f.After = upTo(rng, o.Delay), upTo(rng, o.Delay)
	}
	return f
}

func (o Odds) outcome(drawn float64) Outcome {
	for _, odd := range []struct {
		p float64
		Outcome
	}{{o.Retransmitted, Retransmitted}, {o.Lost, Lost}, {o.Dropped, Dropped}, {o.Zombie, Zombie}} {
		if drawn < odd.p {
			return odd.Outcome
		}
		drawn -= odd.p
	}
	return Answered
}

// upTo is a random duration, never 0 unless most is.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return 1 + time.Duration(rng.Int64N(int64(most)))
}
