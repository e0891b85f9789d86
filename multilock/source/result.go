package source

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/process"
)

// Result is how the job of a name ended: the last attempt at it.
type Result struct {
	Name    string           `json:"name"`
	Token   string           `json:"token"` // of the acquisition under which the job ran
	By      process.Identity `json:"by"`    // who ran it
	User    string           `json:"user,omitempty"`
	Command string           `json:"command,omitempty"`
	// Exit is the exit code, Signal the signal that ended the job.
	Exit   int    `json:"exit"`
	Signal string `json:"signal,omitempty"`
	// Why says more about a failure than its code.
	Why string `json:"why,omitempty"`
	// Output says why what the job has printed is not kept as a whole, where that was to
	// be kept; "" if it is.
	Output string `json:"output,omitempty"`
	// Attempt counts from 1. Final says that nobody is to try once more.
	Attempt int  `json:"attempt"`
	Final   bool `json:"final"`
	// Tick is the one that the job ran for, and Began when the first attempt for it
	// began, both by the source's clock; zero for a job that runs once and for all.
	Tick  time.Time `json:"tick,omitzero"`
	Began time.Time `json:"began,omitzero"`
	// Every says how often the job is to run, in the words in which that was asked for;
	// "" for a job that runs once and for all. Missed is how many ticks went without a run
	// between the last one that had one and this. Succeeded is when the last success of all
	// ended, by the source's clock: this attempt's, or one of an earlier tick; zero if there
	// was none, or nobody knows.
	Every     string    `json:"every,omitempty"`
	Missed    int       `json:"missed,omitempty"`
	Succeeded time.Time `json:"succeeded,omitzero"`
	// Start is when the job was started, by the clock of the host that ran it;
	// Duration is how long it ran.
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	// Chunk is there if this is the result of a chunk of a list, nil if of a job.
	Chunk *Chunk `json:"chunk,omitempty"`
	// Foreign says why the record could not be understood; then nothing else but
	// the name is known, and the job counts as run.
	Foreign string `json:"foreign,omitempty"`
}

// OK says whether the job succeeded.
func (r Result) OK() bool { return r.Exit == 0 && r.Signal == "" && r.Foreign == "" }

// Ledger is a Source that also remembers how jobs ended. What is done under a
// name is recorded by its holder alone, see Committer.
type Ledger interface {
	Source
	// Result is the last recorded result of a name. The error is ErrNoResult if there
	// seems to be none; on a filesystem with caches a result may be seen late, but
	// one that is returned was really committed.
	Result(ctx context.Context, name string) (Result, error)
	// Results lists the names that have a result, sorted. It may be late like Result.
	Results(ctx context.Context) ([]string, error)
	// Revision is a stamp of all results together, got with one request. As long as it stays the
	// same no result was added, replaced or removed, except within two seconds after it was first
	// seen: a source's clock has ticks.
	Revision(ctx context.Context) (string, error)
}

// ResultVersion is that of the form in which sources keep results. A reader refuses
// later ones.
const ResultVersion = 1

// Read is a result that was kept in a form of that version, fit for people to see. The
// error says why it is none that multilock has written.
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

// Timekeeper is a Source with a clock of its own. All hosts read the same one,
// whatever their own clocks say.
type Timekeeper interface {
	// Now is the source's time, as it was during the call.
	Now(ctx context.Context) (time.Time, error)
}

// Committer is a Lease of a Ledger.
type Committer interface {
	// Outcome is the last committed result of the lock's name. The answer is the
	// source's own and never a cache's: what any earlier holder committed is seen. The
	// lock is verified after that, so the answer still holds. The error is ErrNoResult
	// if nobody has committed one, ErrLost if the lock was not held any more.
	Outcome(ctx context.Context) (Result, error)
	// Commit records how the holder's job ended, in one step that succeeds only while
	// the lock is this lease's: nobody can take the lock and not see the result. The
	// error is ErrLost if the lock was not held any more, and then it is not this
	// result that is recorded; ErrUnsure if it cannot be learned whether it is; after
	// any other nothing was recorded, and Commit may be called again.
	Commit(ctx context.Context, r Result) error
	// Forget removes the result of the lock's name, in one step of the same kind: it
	// never reaches what a later holder committed. That there is none is no error; the
	// others are as for Commit.
	Forget(ctx context.Context) error
}

// ErrNoResult says that no result was committed under a name.
var ErrNoResult = errors.New("there is no result")
