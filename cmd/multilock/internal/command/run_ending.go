package command

import (
	"errors"
	"strconv"
	"time"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/show"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/process"
)

// held is a lock that was acquired.
type held struct {
	lock   *multilock.Lock
	slot   int // 0 without --slots
	since  time.Time
	waited time.Duration
}

// lockName returns the lock's name. For a slot it differs from the job's name.
func (h held) lockName() string { return h.lock.Record().Name }

// heldUntil is the approximate time, by this host's clock, at which other processes can acquire a timed lock,
// whose TTL is its whole period.
func (h held) heldUntil() string { return h.since.Add(h.lock.Record().TTL).Format(time.TimeOnly) }

// staysHeld describes how long a timed lock remains held after its release.
func (h held) staysHeld() string {
	if !h.lock.Timed() {
		return ""
	}
	return "; it stays taken until about " + h.heldUntil()
}

// facts describes a run so far. Reports get a copy.
type facts struct {
	*request
	held       // zero if the lock was not acquired
	self       process.Identity
	fence      uint64
	attempt    lockgroup.Attempt  // the last one
	result     *job.Result        // of the last command, nil if none was started
	why        error              // why the command was not started, or was ended
	warnings   []string           // about the plan
	logPath    string             // of the command's output, "" without --log
	logCommand string             // shows the output, "" without --capture
	skipped    *lockgroup.Outcome // why there was nothing to do, otherwise nil
}

// begun reports whether an attempt was made.
func (f facts) begun() bool { return f.attempt.Lock != nil }

// started reports whether any command was started. An attempt after the first implies that.
func (f facts) started() bool { return f.result != nil || f.begun() && !f.attempt.First }

// jobVariables describe the run to its job and its hooks.
func (f facts) jobVariables() []string {
	vars := []string{"MULTILOCK_NAME=" + f.Name, "MULTILOCK_GROUP=" + f.Group}
	if f.slot > 0 {
		vars = append(vars, "MULTILOCK_SLOT="+strconv.Itoa(f.slot))
	}
	if f.attempt.Attempt > 0 {
		vars = append(vars, "MULTILOCK_ATTEMPT="+strconv.Itoa(f.attempt.Attempt))
	}
	if tick := f.attempt.Tick; !tick.IsZero() {
		vars = append(vars, "MULTILOCK_TICK="+tick.Format(time.RFC3339))
	}
	if f.fence > 0 {
		vars = append(vars, "MULTILOCK_FENCE="+strconv.FormatUint(f.fence, 10))
	}
	return vars
}

// hookEvent selects which hook runs.
type hookEvent string

const (
	eventNone    hookEvent = "" // the lock was not acquired, or there was nothing to do
	eventSuccess hookEvent = "success"
	eventFailure hookEvent = "failure"
	eventLoss    hookEvent = "loss"
	eventOverrun hookEvent = "overrun"
)

// ending describes a run at its end, for the hooks, --ping, --json and the exit code.
type ending struct {
	facts
	event   hookEvent
	err     error // determines the exit code
	heldFor time.Duration
	printed []byte // the end of the job's output
}

func (f facts) ending(err error, printed []byte) ending {
	end := ending{facts: f, err: err, heldFor: time.Since(f.since), printed: printed}
	end.event = end.classify()
	return end
}

// classify returns the event of an ending. If another process holds the lock or has run the job, that is not
// a failure.
func (end ending) classify() hookEvent {
	code := console.ExitCode(end.err)
	switch {
	case end.skipped != nil:
	case end.begun() && end.err == nil:
		return eventSuccess
	case end.begun() && errors.Is(end.err, multilock.ErrLost):
		return eventLoss
	case end.begun(), code == console.ExitStarved:
		return eventFailure
	case errors.Is(end.err, multilock.ErrHeld):
	case code == console.ExitUnsure, code == console.ExitFailure:
		return eventFailure
	}
	return eventNone
}

// explain describes the ending in one line.
func (end ending) explain() string {
	text := show.Explain(end.err)
	var ended *console.JobError
	if text == "" && errors.As(end.err, &ended) {
		text = ended.Error()
	}
	return console.Line(text)
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

// report reports an ending after the release, and returns the run's error. The ping runs in parallel.
func (s surroundings) report(end ending, after aftermath) error {
	if after.stop == nil {
		after.stop = s.signals.Next()
	}
	defer end.startPing(s.env.Say, after.stop)()
	if end.skipped != nil && end.err == nil && !end.Quiet && !end.JSON { // --json reports it anyway
		s.env.Say("%s", end.skipText())
	}
	if end.JSON && (end.begun() || end.skipped != nil) {
		s.env.SayObject(end.json())
	}
	after.printed.end(after.stop, end.err)
	after.overrun.end()
	s.hook(end.event, end.hookVariables(), end.printed, after.stop)
	return end.err
}
