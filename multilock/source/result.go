package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Result is how the last attempt at a job ended.
type Result struct {
	Name    string           `json:"name"`
	Token   string           `json:"token"` // of the acquisition under which the job ran
	By      process.Identity `json:"by"`    // the process that ran it
	User    string           `json:"user,omitempty"`
	Command string           `json:"command,omitempty"`
	// Exit is the exit code, Signal the signal that ended the job.
	Exit   int    `json:"exit"`
	Signal string `json:"signal,omitempty"`
	// Why describes a failure beyond its code.
	Why string `json:"why,omitempty"`
	// Output is why the job's output was not captured as a whole; "" if it was, or if it was not to be
	// captured.
	Output string `json:"output,omitempty"`
	// Attempt counts from 1. Final means that no further attempt follows.
	Attempt int  `json:"attempt"`
	Final   bool `json:"final"`
	// Tick is the tick for which the job ran, and Began the time at which the first attempt for it
	// began, both by the source's clock. Both are zero for a job that runs once.
	Tick  time.Time `json:"tick,omitzero"`
	Began time.Time `json:"began,omitzero"`
	// Every is the job's schedule as it was given, "" for a job that runs once. Missed counts the ticks
	// without a run since the last tick that had one. Succeeded is the end of the latest success, of this
	// attempt or of an earlier tick, by the source's clock; it is zero if there was none, or if it is
	// unknown.
	Every     string    `json:"every,omitempty"`
	Missed    int       `json:"missed,omitempty"`
	Succeeded time.Time `json:"succeeded,omitzero"`
	// Start is when the job was started, by the clock of the host that ran it;
	// Duration is how long it ran.
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	// Chunk is set if this is the result of a chunk of a list, nil if of a job.
	Chunk *Chunk `json:"chunk,omitempty"`
	// Foreign is why the record cannot be read. Then only the name is known, and the job counts as run.
	Foreign string `json:"foreign,omitempty"`
}

// OK reports whether the job succeeded.
func (r Result) OK() bool { return r.Exit == 0 && r.Signal == "" && r.Foreign == "" }

// Ledger is a Source that also records how jobs ended. Only the holder of a name records a result
// for it, see Committer.
type Ledger interface {
	Source
	// Result returns the last recorded result of a name. The error is ErrNoResult if there seems to
	// be none; on a filesystem with caches a result may be seen late, but one that is returned was
	// really committed.
	Result(ctx context.Context, name string) (Result, error)
	// Results lists the names that have a result, sorted. Like Result it may be late.
	Results(ctx context.Context) ([]string, error)
	// Revision returns a stamp of all results together, with one request. As long as it stays the
	// same no result was added, replaced or removed, except within two seconds after it was first
	// seen: a source's clock has ticks.
	Revision(ctx context.Context) (string, error)
}

// ResultVersion is the version of the stored form of results. Readers reject other versions.
const ResultVersion = 1

// Read checks a result that was stored in a form of that version, and makes it printable. The error
// is why multilock cannot have written it.
func (r Result) Read(version int) (Result, error) {
	switch {
	case version != ResultVersion:
		return Result{}, fmt.Errorf("it has format %d, this multilock knows %d", version, ResultVersion)
	case r.Token == "" || r.By.Host == "" || r.Attempt < 1 || r.Foreign != "":
		return Result{}, errors.New("its record lacks its token, host or attempt")
	}
	if err := r.Chunk.check(); err != nil {
		return Result{}, err
	}
	return r.Bounded().Printable(), nil
}

// Timekeeper is a Source with a clock of its own. All hosts read the same clock, whatever their own
// clocks show.
type Timekeeper interface {
	// Now returns the source's time at an instant of the call.
	Now(ctx context.Context) (time.Time, error)
}

// Committer is a Lease of a Ledger.
type Committer interface {
	// Outcome returns the last committed result of the lock's name. The reply comes from the source
	// and never from a cache: the result of any earlier holder is seen. The lock is verified
	// afterwards, so the reply still holds. The error is ErrNoResult if there is none, ErrLost if
	// the lock was no longer held.
	Outcome(ctx context.Context) (Result, error)
	// Commit records how the holder's job ended, in one step that succeeds only while the lease
	// holds the lock: no process can acquire the lock without seeing the result. The error is
	// ErrLost if the lock was no longer held, and then this result is not recorded; ErrUnsure if it
	// cannot be determined whether it is; after any other error nothing was recorded, and Commit
	// may be called again.
	Commit(ctx context.Context, r Result) error
	// Forget removes the result of the lock's name, in one step like Commit: it never removes what
	// a later holder committed. It is no error if there is none; the other errors are those of
	// Commit.
	Forget(ctx context.Context) error
}

// ErrNoResult means that no result was committed under a name.
var ErrNoResult = errors.New("there is no result")
