package multilock

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Defaults of Options.
const (
	DefaultTTL  = 2 * time.Minute
	DefaultPoll = time.Second
	// maxHeartbeat bounds the heartbeat interval of a lock with a long TTL, so that a status soon shows
	// whether its holder is alive.
	maxHeartbeat = 30 * time.Second
)

// Options configure how a lock is acquired and held. The zero value suits most programs.
type Options struct {
	// TTL is how long the lock stays held without a heartbeat: DefaultTTL if 0, at least source.MinTTL.
	// Choose it longer than the longest outage of the source that a holder should survive. A heartbeat is
	// sent every tenth of the TTL, at least every 30 s.
	TTL time.Duration
	// Poll is the longest pause between two attempts while waiting, DefaultPoll if 0.
	Poll time.Duration
	// StalePolicy decides when another holder's lock is stale.
	StalePolicy StalePolicy
	// Fair makes the call queue with all other calls that set it: first come, first served. It costs some
	// 20 more requests for each acquisition, and fewer while many wait. It is only for calls that wait.
	Fair bool
	// User and Command are recorded in the lock for people. Command defaults to the program's name.
	User, Command string
	// Batch is the job of a batch system in which this process runs (source.BatchJobOf). It
	// is recorded for people, and for the Probe of other processes' StalePolicy.
	Batch source.BatchJob
	// Trouble, if not nil, is called with each transient error (ErrPassing) that a waiting call retries,
	// before that call returns.
	Trouble func(error)
	// Refuse, if not nil, is called with each live holder that a call would wait for, perhaps several times
	// with the same one. If it returns an error, the wait ends with that error.
	Refuse func(source.Record) error
}

// Terms define which process renews a lock, and which process's life it depends on. Options are the usual
// terms: this process renews the lock, and holds it. The others are Detached, OnBehalf and ForJob;
// Recurring adds to any of them.
type Terms interface{ terms() terms }

// Detached are the terms of a lock that no process renews: it is held until it is released or its TTL is
// over. The process that acquired it may end.
type Detached struct{ Options }

// OnBehalf are the terms of a lock that this process renews for another one, its Owner. The lock records
// the owner, and is judged by the owner's life: when the owner ends, the lock is free at once on its host.
// When only this process ends, the lock is free after the TTL. The caller releases the lock when the owner
// ends.
type OnBehalf struct {
	Options
	// Owner is a process on this host, as process.Find returns it.
	Owner process.Identity
}

// ForJob are the terms of a lock for processes that this process starts. While one of them lives, the lock
// is held on this host even if this process dies. This applies to each process that the caller starts with
// Lock.JobEnviron in its environment, and to each in a process group that Lock.MarkJob recorded.
type ForJob struct {
	Options
	// LookFirst makes TryAcquire inspect the lock before it prepares an attempt. That is cheaper for a lock
	// that is usually held, and costs one more inspection for a free one.
	LookFirst bool
}

// Recurring are Terms that record how often the job under the lock should run, so that a job whose first
// run has not ended can be recognized as late.
type Recurring struct {
	Terms
	// Every has the syntax of lockgroup.ParseEvery, or is source.EveryOnce.
	Every string
}

// terms are all terms in one form.
type terms struct {
	Options
	owner     process.Identity
	every     string
	detached  bool
	onBehalf  bool
	job       bool
	lookFirst bool
	key       process.JobKey // of one acquisition for a job
}

func (o Options) terms() terms  { return terms{Options: o} }
func (d Detached) terms() terms { return terms{Options: d.Options, detached: true} }
func (b OnBehalf) terms() terms { return terms{Options: b.Options, onBehalf: true, owner: b.Owner} }
func (j ForJob) terms() terms   { return terms{Options: j.Options, job: true, lookFirst: j.LookFirst} }
func (r Recurring) terms() terms {
	t := r.Terms.terms()
	t.every = r.Every
	return t
}
func (t terms) terms() terms { return t }

// check fills in the defaults. It has all rules on what may be combined.
func (t terms) check(m mode) (terms, error) {
	t.TTL, t.Poll = cmp.Or(t.TTL, DefaultTTL), cmp.Or(t.Poll, DefaultPoll)
	switch {
	case t.TTL < source.MinTTL:
		return t, invalidDuration("ttl", t.TTL, "must be at least %s", source.MinTTL)
	case t.TTL > source.MaxTTL:
		return t, invalidDuration("ttl", t.TTL, "must be at most %s", source.MaxTTL)
	case t.Poll < 0:
		return t, invalidDuration("poll", t.Poll, "must be positive")
	case t.StalePolicy.MaxAge < 0:
		return t, invalidDuration("max-age", t.StalePolicy.MaxAge, "must be positive")
	case t.Fair && m != wait:
		return t, &source.InvalidError{What: "option", Got: "fair", Why: "has no meaning for a call that does not wait"}
	case t.onBehalf && (t.owner.Host == "" || t.owner.PID <= 0):
		return t, &source.InvalidError{What: "owner", Got: fmt.Sprintf("%s:%d", t.owner.Host, t.owner.PID), Why: "names no process"}
	}
	return t, nil
}

func invalidDuration(what string, got time.Duration, format string, args ...any) error {
	return &source.InvalidError{What: what, Got: got.String(), Why: fmt.Sprintf(format, args...)}
}

// heartbeat is the heartbeat interval, 0 for a lock that no process renews.
func (t terms) heartbeat() time.Duration {
	if t.detached {
		return 0
	}
	return min(t.TTL/10, maxHeartbeat)
}

// command is what is recorded as the holder's command.
func (o Options) command() string { return cmp.Or(o.Command, filepath.Base(os.Args[0])) }

// claim is what this process writes into the lock. The source adds the process's identity, unless the lock
// has another owner.
func (t terms) claim() source.Claim {
	holder := Holder{Identity: t.owner, User: t.User, Command: t.command(), Batch: t.Batch, Every: t.every}
	return source.Claim{Holder: holder, TTL: t.TTL, Heartbeat: t.heartbeat(), Job: t.job, KeyDigest: t.key.Digest()}
}
