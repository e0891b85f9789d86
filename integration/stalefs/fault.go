//go:build linux

package stalefs

import (
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// Kind is the kind of a modifying call.
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

// Call is a modifying call that a mount is about to send.
type Call struct {
	N    int // number of earlier calls of the mount
	Kind Kind
	Name string // the entry's name; empty for SETATTR and WRITE, which refer to a handle
}

// Outcome is what happens to a call and its reply.
type Outcome int

// The outcomes.
const (
	// Answered is the normal case.
	Answered Outcome = iota
	// Retransmitted means that the call is executed, its reply is lost, and the call is executed
	// again, as by a server that was restarted. The caller receives the second reply: ENOENT for
	// RENAME, REMOVE and RMDIR, EEXIST for MKDIR and an exclusive CREATE. (A server that stores the
	// verifier of an exclusive CREATE reports success: use Answered.)
	Retransmitted
	// Lost means that the call is executed and the caller receives Errno.
	Lost
	// Dropped means that the call is never executed and the caller receives Errno.
	Dropped
	// Zombie means that the caller receives Errno and the call is executed later.
	Zombie
)

func (o Outcome) String() string {
	return [...]string{"answered", "retransmitted", "lost", "dropped", "zombie"}[o]
}

// Fault is what happens to one call. The zero value is no fault.
type Fault struct {
	Outcome Outcome
	// Errno is the error of a client that gave up: EIO on a soft mount, ETIMEDOUT with softerr.
	Errno syscall.Errno
	// Before and After delay the call and its reply.
	Before, After time.Duration
	// Later is the delay before a zombie is executed; if 0, it waits for Server.Land.
	Later time.Duration
}

// Injector decides what happens to a call. It may be called concurrently.
type Injector func(Call) Fault

// At returns an injector that applies a fault to the n-th call only.
func At(n int, f Fault) Injector {
	return func(c Call) Fault {
		if c.N == n {
			return f
		}
		return Fault{}
	}
}

// Odds are the probabilities of the outcomes, and the longest of the delays, which affect one call
// in four.
type Odds struct {
	Retransmitted, Lost, Dropped, Zombie float64
	Delay                                time.Duration
	Later                                time.Duration
}

// Random draws a fault for each call. A seed determines the sequence of faults, but their
// assignment to calls depends on the order of the calls.
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

// upTo returns a random duration, positive if most is.
func upTo(rng *rand.Rand, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return 1 + time.Duration(rng.Int64N(int64(most)))
}
