package source

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Holder says who holds a lock, for people and for judging whether it lives.
type Holder struct {
	process.Identity
	User    string `json:"user,omitempty"`
	Command string `json:"command,omitempty"`
	// Batch is the batch system's job in which it runs, zero if that is none.
	Batch BatchJob `json:"batch,omitzero"`
	// Every says how often the job under the lock is to run, as Result.Every does, or EveryOnce;
	// "" if nobody expects it again.
	Every string `json:"every,omitempty"`
}

// EveryOnce is the Holder.Every of a job that is to run once and for all.
const EveryOnce = "once"

// String names the holder in one line: host, pid, user and command.
func (h Holder) String() string {
	switch {
	case h.Host == "":
		return "somebody unknown"
	case h.PID <= 0:
		return fmt.Sprintf("%s (detached%s)", h.Host, h.byUser())
	case h.Command == "":
		return fmt.Sprintf("%s pid %d%s", h.Host, h.PID, h.byUser())
	default:
		return fmt.Sprintf("%s pid %d%s: %s", h.Host, h.PID, h.byUser(), h.Command)
	}
}

func (h Holder) byUser() string {
	if h.User == "" {
		return ""
	}
	return " by " + h.User
}

// Claim is what a contender writes into the lock that it wants.
type Claim struct {
	// Holder is for people and for judging its life. A source fills in the identity
	// of the calling process where it is empty.
	Holder Holder
	// TTL is how long the lock stays held without a sign of life.
	TTL time.Duration
	// Heartbeat is the time between two signs of life. 0 says that there will be
	// none: the lock is held until TTL has passed.
	Heartbeat time.Duration
	// Job says that other processes work under the lock: see multilock.ForJob. From the
	// holder's death alone nobody then concludes that the lock is free.
	Job bool
	// KeyDigest is that of the process.JobKey by which those processes are known, "" if they
	// are known by the token.
	KeyDigest string
}

// JobMark is how the processes of the job are known.
func (r Record) JobMark() process.JobMark {
	return process.JobMark{Token: r.Token, KeyDigest: r.KeyDigest}
}

// By is the claim with the identity of the process that makes it, if it names nobody
// yet. No process stands for a lock that nobody renews.
func (c Claim) By(self process.Identity) Claim {
	if c.Holder.Host != "" {
		return c
	}
	c.Holder.Identity = self
	if c.Heartbeat == 0 {
		c.Holder.PID, c.Holder.Start = -1, 0
	}
	return c
}

// MaxGroups is how many process groups a lock can name.
const MaxGroups = 1024

// Limits of Claim.TTL.
const (
	MinTTL = 100 * time.Millisecond
	MaxTTL = 10 * 365 * 24 * time.Hour
)

// reserved is the part of the TTL, a fifth, in which a holder does not believe in
// its lock any more and nobody else can have it: time to stop whatever works under
// it.
const reserved = 5

// Tenure is how long a holder believes in its lock after the last confirmed sign
// of life. Others may take the lock after the TTL at the earliest.
func (c Claim) Tenure() time.Duration { return c.TTL - c.TTL/reserved }

// Record is what a source knows of a lock that somebody holds.
type Record struct {
	Name  string
	Token string // unique per acquisition; "" if whoever wrote the record uses none
	Claim
	// Prepared is when the holder wrote the record, by the holder's own clock: for
	// people only, nothing is decided by it.
	Prepared time.Time
	// Groups are the process groups of the jobs, once the holder has named them. More than
	// MaxGroups are not read, and nobody names them.
	Groups []process.Group
	// Foreign says why the record cannot be understood, "" if it can. Such a lock
	// is held by somebody unknown.
	Foreign string
}

// State is what a look at a lock showed.
type State int

const (
	// StateFree means that nobody holds the lock.
	StateFree State = iota
	// StateHeld means that somebody holds it and counts as alive.
	StateHeld
	// StateSuspect means that the holder has been silent for too long, and is being
	// watched: keep looking.
	StateSuspect
	// StateDead means that the evidence for the holder's death is complete: the lock
	// may be broken.
	StateDead
)

// String is the state's name as messages and JSON use it.
func (s State) String() string {
	switch s {
	case StateFree:
		return "free"
	case StateHeld:
		return "held"
	case StateSuspect:
		return "suspect"
	case StateDead:
		return "dead"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Unknown is the duration of what a source cannot tell.
const Unknown time.Duration = -1

// Sighting is what one look at a lock showed.
type Sighting struct {
	State  State
	Record Record
	// Age is the time since the lock was acquired, Silence the time since its
	// holder's last sign of life, both by the source's own clock; Unknown if the
	// source cannot tell.
	Age, Silence time.Duration
	// Why is the evidence for State, for people.
	Why string
	// Limbo says that nobody holds the lock: what is seen was left by a crash, and
	// nobody can take the lock before it is cleared.
	Limbo bool
	// Next says when another look may show something new.
	Next time.Duration
}
