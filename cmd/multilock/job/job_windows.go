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

// On Windows a job is a job object: the command and all its descendants are in it, and cannot leave
// it. Only the runner has a handle to it, so the kernel ends the whole job when the runner is killed,
// without a guard. If a debugger suspends the runner, its job is not ended.
//
// Ctrl-Break asks a program to end. It only reaches processes that share the runner's console. The
// command is a console process group of its own, because Ctrl-C cannot be sent to a group. Keys
// reach the runner, which passes them on as Ctrl-Break.

// GuardArg is never passed on this system.
const GuardArg = "__guard"

// Guard returns 1: a job needs no guard here.
func Guard(*os.File) int { return 1 }

// Job is a running command, or one that has ended. Its methods may be called from any goroutine.
type Job struct {
	object  *object
	started time.Time

	stops    sync.Once
	stopping chan struct{} // closed when Stop has been called

	done   chan struct{}
	result Result // valid once done is closed
}

// Start starts the command. The error is a *NotFoundError or a *NotRunnableError if the command
// cannot be run, and any other if something else fails.
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

// watch waits for the command's end. As on other systems, it does not end processes that the command
// left behind, unless the job is being ended.
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
	// killedCode is the exit code of a process that the runner kills.
	killedCode = 128 + uint32(syscall.SIGKILL)
)

// resultOf reports the code of a killed process as SIGKILL, as on other systems.
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

// Group returns the command's process. There are no process groups, so no other process can judge
// it.
func (j *Job) Group() process.Group { return process.Group{PGID: int(j.object.pid)} }

// Signal sends Ctrl-Break for a signal that asks to end. After the command has ended it returns
// os.ErrProcessDone.
func (j *Job) Signal(sig syscall.Signal) error {
	switch {
	case isClosed(j.done):
		return os.ErrProcessDone
	case !Asks(sig):
		return fmt.Errorf("signal job %d: %v: %w", j.object.pid, sig, errors.ErrUnsupported)
	}
	return j.object.ask()
}

// Stop ends the whole job: it sends Ctrl-Break to the processes that share the runner's console,
// and terminates those still alive after the grace or when ctx is done. It returns nil when no
// process of the job lives, and a *LingeringError when some are alive ten seconds later. It may be
// called more than once, and after Done.
func (j *Job) Stop(ctx context.Context, grace time.Duration) error {
	j.stops.Do(func() { close(j.stopping) })
	if err := j.object.end(ctx, grace); err != nil {
		return err
	}
	<-j.done
	return nil
}

// Signals returns what a runner should catch for its job: Ctrl-C and Ctrl-Break, and the closing of
// the console or a logoff.
func Signals() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// pass passes on a signal from Forward. It fails only when the job is over, or has no console.
func (j *Job) pass(sig syscall.Signal) { _ = j.Signal(sig) }

// Reraise does nothing: a parent only sees the exit code.
func (r Result) Reraise() {}

// Reach describes, for people, which processes end with a job.
const Reach = "a job is killed with all its processes (a Windows job object), also if multilock itself is killed"
