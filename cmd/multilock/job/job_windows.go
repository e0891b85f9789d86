package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/multilock/go/multilock/process"
)

// On Windows a job is a job object: the command is born in it, what it starts is in it, and
// nothing of that can leave it. Its only handle is ours, so that the kernel ends all of it
// when we are killed; no guard is needed for that. A runner that is suspended by a debugger
// does not end its job: nobody does.
//
// What asks a program to end is Ctrl-Break, which only those get that share our console:
// the command is a console process group of its own, for Ctrl-C cannot be sent to one. It
// does not get the keys itself; they come to us, and are passed on as Ctrl-Break.

// GuardArg is never given to a process on this system.
const GuardArg = "__guard"

// Guard returns 1: there is no job to guard.
func Guard(*os.File) int { return 1 }

// Job is a running command, or one that has ended. Its methods may be called
// from any goroutine.
type Job struct {
	object  *object
	started time.Time

	stops    sync.Once
	stopping chan struct{} // closed when Stop has been called

	done   chan struct{}
	result Result // valid once done is closed
}

// Start starts the command. The error is a *NotFoundError or a *NotRunnableError when the
// command is to blame, and any other when something else is.
func Start(spec Spec) (*Job, error) {
	spec, err := spec.complete()
	if err != nil {
		return nil, err
	}
	path, line, err := spec.commandLine()
	if err != nil {
		return nil, err
	}
	o, err := newObject()
	if err != nil {
		return nil, fmt.Errorf("start job: %w", err)
	}
	j := &Job{object: o, started: time.Now(), stopping: make(chan struct{}), done: make(chan struct{})}
	if err := o.create(spec, path, line); err != nil {
		o.close()
		return nil, spec.explain(err)
	}
	runtime.AddCleanup(j, (*object).close, o)
	go j.watch()
	return j, nil
}

// watch sees the command to its end. What it has left behind is left alone then, as
// elsewhere, unless the job is being ended.
func (j *Job) watch() {
	code, err := j.object.wait()
	if err != nil {
		code = unknownCode
	}
	j.result = j.resultOf(code)
	if !j.isStopping() {
		j.object.release()
	}
	close(j.done)
}

const (
	// unknownCode is 125, the code for failures of the runner.
	unknownCode = 125
	// killedCode is what a process ends with that we kill.
	killedCode = 128 + uint32(syscall.SIGKILL)
)

// resultOf calls by the name of a signal what is one elsewhere.
func (j *Job) resultOf(code uint32) Result {
	r := Result{Code: int(code), Started: j.started, Elapsed: time.Since(j.started)}
	switch {
	case code == killedCode && j.isStopping():
		r.Signal = syscall.SIGKILL
	case windows.NTStatus(code) == windows.STATUS_CONTROL_C_EXIT && j.isStopping():
		r.Signal = syscall.SIGTERM
	case windows.NTStatus(code) == windows.STATUS_CONTROL_C_EXIT:
		r.Signal = syscall.SIGINT
	default:
		return r
	}
	r.Code = 128 + int(r.Signal)
	return r
}

// Group names the command's process, which nobody else can judge: there are no process groups.
func (j *Job) Group() process.Group { return process.Group{PGID: int(j.object.pid)} }

// Signal sends Ctrl-Break for a signal that asks to end. After the command has ended it
// returns os.ErrProcessDone.
func (j *Job) Signal(sig syscall.Signal) error {
	switch {
	case isClosed(j.done):
		return os.ErrProcessDone
	case !Asks(sig):
		return fmt.Errorf("signal job %d: %v: %w", j.object.pid, sig, errors.ErrUnsupported)
	}
	return j.object.ask()
}

// Stop ends the whole job: Ctrl-Break to its processes if they share our console, and those
// that live after the grace, or when ctx is done, are ended by the kernel. It returns nil
// when no process of the job lives, and a *LingeringError when some live on ten seconds
// later. It may be called more than once, and after Done.
func (j *Job) Stop(ctx context.Context, grace time.Duration) error {
	j.stops.Do(func() { close(j.stopping) })
	if err := j.object.end(ctx, grace); err != nil {
		return err
	}
	<-j.done
	return nil
}

// Signals returns what a runner should catch for its job: Ctrl-C and Ctrl-Break, and that
// the console is closed or the user logs off.
func Signals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// pass sends what Forward has got. It fails only when the job is over, or has no console.
func (j *Job) pass(sig syscall.Signal) { _ = j.Signal(sig) }

// Reraise does nothing: an exit code is all that a parent sees.
func (r Result) Reraise() {}

// Reach says, for people, what a job is here.
const Reach = "a job is ended with all its processes, also when multilock is killed: they are in a job object of Windows"
