package source

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Holder identifies the holder of a lock, for users and for judging whether it is alive.
type Holder struct {
	process.Identity
	User    string `json:"user,omitempty"`
	Command string `json:"command,omitempty"`
	// Batch is the batch job that the holder runs in, zero if there is none.
	Batch BatchJob `json:"batch,omitzero"`
	// Every is the schedule of the job under the lock, as in Result.Every, or EveryOnce; "" if no
	// further run is expected.
	Every string `json:"every,omitempty"`
}

// EveryOnce is the Holder.Every of a job that runs only once.
const EveryOnce = "once"

// String describes the holder in one line: host, pid, user and command.
func (h Holder) String() string {
	switch {
	case h.Host == "":
		return "an unknown process"
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

// Claim is what a contender writes into the lock.
type Claim struct {
	// Holder identifies the holder. A source fills in the identity of the calling process where it
	// is empty.
	Holder Holder
	// TTL is how long the lock stays held without a heartbeat.
	TTL time.Duration
	// Heartbeat is the time between two heartbeats. 0 means that there are none: the lock is held
	// until TTL has passed.
	Heartbeat time.Duration
	// Job means that other processes run under the lock: see multilock.ForJob. Then the holder's
	// death alone does not free the lock.
	Job bool
	// KeyDigest is the digest of the process.JobKey that identifies those processes, "" if the
	// token does.
	KeyDigest string
}

// JobMark returns the mark that identifies the job's processes.
func (r Record) JobMark() process.JobMark {
	return process.JobMark{Token: r.Token, KeyDigest: r.KeyDigest}
}

// By returns the claim with the identity of its process, if it has none yet. A lock without
// heartbeats names no process.
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

// MaxGroups is the maximum number of process groups in a lock.
const MaxGroups = 1024

// Limits of Claim.TTL.
const (
	MinTTL = 100 * time.Millisecond
	MaxTTL = 10 * 365 * 24 * time.Hour
)

// reserved is the divisor of the TTL for its last part, a fifth, in which a holder considers its
// lock lost and no other process can acquire it: time to stop the work under it.
const reserved = 5

// Tenure is how long a lock is valid for its holder after the last confirmed heartbeat. Other
// processes can acquire the lock after the TTL at the earliest.
func (c Claim) Tenure() time.Duration { return c.TTL - c.TTL/reserved }

// Record is what a source knows of a held lock.
type Record struct {
	Name  string
	Token string // unique per acquisition; "" if the record's format has none
	Claim
	// Prepared is when the holder wrote the record, by the holder's clock: only for users, no
	// decision depends on it.
	Prepared time.Time
	// Groups are the process groups of the jobs, once the holder has recorded them. More than
	// MaxGroups are neither written nor read.
	Groups []process.Group
	// Foreign is why the record cannot be read, "" if it can. The holder of such a lock is unknown.
	Foreign string
}

// State is the state of a lock in an observation.
type State int

const (
	// StateFree means that no process holds the lock.
	StateFree State = iota
	// StateHeld means that the lock is held, and its holder counts as alive.
	StateHeld
	// StateSuspect means that the holder's heartbeat is overdue, and that more looks are needed.
	StateSuspect
	// StateDead means that the evidence for the holder's death is complete: the lock may be broken.
	StateDead
)

// String returns the state's name in messages and JSON.
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

// Unknown is a duration that a source does not know.
const Unknown time.Duration = -1

// Observation is one observation of a lock.
type Observation struct {
	State  State
	Record Record
	// Age is the time since the lock was acquired, Silence the time since its holder's last
	// heartbeat, both by the source's own clock; Unknown if the source does not know.
	Age, Silence time.Duration
	// Why is the evidence for State, for users.
	Why string
	// Orphan means that the lock is not held, but cannot be acquired before an entry that a crash
	// left is removed.
	Orphan bool
	// Next is when another look may show a change.
	Next time.Duration
}
