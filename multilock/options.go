package multilock

import (
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Defaults of Options.
const (
	DefaultTTL  = 2 * time.Minute
	DefaultPoll = time.Second
	// maxHeartbeat bounds the time between two signs of life of a lock with a long
	// TTL: people who look at it want to see that it lives.
	maxHeartbeat = 30 * time.Second
)

// Options say how a lock is acquired and held. The zero value is good for most.
type Options struct {
	// TTL is how long the lock stays held without a sign of life, DefaultTTL if 0,
	// and at least source.MinTTL.
	// It should be longer than the longest outage of the source that holders are to
	// survive. A lock is renewed every tenth of it, at least every 30 s.
	TTL time.Duration
	// Patience is for other holders' locks.
	Patience Patience
	// LookFirst has TryAcquire look whether somebody alive holds the lock before it prepares
	// anything. That is cheaper where the lock is mostly held, and costs a look where it is free.
	LookFirst bool
	// Poll is the longest pause between two attempts while waiting, DefaultPoll if 0.
	Poll time.Duration
	// Fair has Acquire stand in line with all others who do: who came first is first. It
	// costs some 20 requests more for each turn, and less while many wait: see Queue.
	Fair bool
	// Trouble, if not nil, is called by Acquire, and before it returns, with each error that
	// may pass by itself (ErrPassing), which it then waits out.
	Trouble func(error)
	// Refuse, if not nil, is asked by Acquire about each living holder that it would wait for. An
	// error of it ends the wait.
	Refuse func(source.Record) error
	// User and Command are recorded for people.
	User, Command string
	// Batch is recorded for people, and for a Patience's Probe: see source.BatchJobOf.
	Batch source.BatchJob
	// Every is recorded for who looks whether a job is late whose first run has not ended: how
	// often it is to run, in the words of lockgroup.ParseEvery, or source.EveryOnce.
	Every string
	// Job says that other processes work under the lock. While one of them lives, the
	// holder counts as alive on this host even if this process dies: each that has
	// Lock.JobEnviron in its environment, which is for whoever starts them to see to, and
	// each in the group given to Lock.MarkJob.
	Job bool
	// jobKey is that of one acquisition.
	jobKey process.JobKey
	// Owner is the process that the lock is held for, if that is not this one, which
	// renews it: the record names the owner, and the lock is judged by its life. With the
	// owner's end it is free at once on its host, whatever this process does; this
	// process's own end is silence, like a failing network, and frees it after the TTL.
	// As process.Find returns it; it must run on this host. To release the lock when the
	// owner ends is for the caller to do. Not for Job, whose group this process starts, nor
	// for Detached, which depends on no process.
	Owner process.Identity
	// Detached makes a lock that nobody renews: it is held for the TTL and then free,
	// unless it is released before. The process that acquired it may end.
	Detached bool
}

// check validates the options as a whole and fills in the defaults.
func (o Options) check() (Options, error) {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	switch {
	case o.TTL < source.MinTTL:
		return o, invalidDuration("ttl", o.TTL, "must be at least %s", source.MinTTL)
	case o.TTL > source.MaxTTL:
		return o, invalidDuration("ttl", o.TTL, "must be at most %s", source.MaxTTL)
	case o.Poll < 0:
		return o, invalidDuration("poll", o.Poll, "must be positive")
	case o.Patience.MaxAge < 0:
		return o, invalidDuration("max-age", o.Patience.MaxAge, "must be positive")
	case o.Owner != (process.Identity{}) && (o.Job || o.Detached):
		return o, &source.InvalidError{What: "option", Got: "owner", Why: "a lock that guards a job, or that nobody renews, is not held for another process"}
	case o.Owner != (process.Identity{}) && (o.Owner.Host == "" || o.Owner.PID <= 0):
		return o, &source.InvalidError{What: "option", Got: "owner", Why: "names no process"}
	case o.Detached && o.Job:
		return o, &source.InvalidError{What: "option", Got: "detached", Why: "a job cannot run under a lock that nobody renews"}
	}
	return o, nil
}

func invalidDuration(what string, got time.Duration, format string, args ...any) error {
	return &source.InvalidError{What: what, Got: got.String(), Why: fmt.Sprintf(format, args...)}
}

// heartbeat is the time between two signs of life.
func (o Options) heartbeat() time.Duration {
	if o.Detached {
		return 0
	}
	return min(o.TTL/10, maxHeartbeat)
}
