//go:build !unix

package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/process"
)

// GuardArg is never given to a process on this system.
const GuardArg = "__guard"

// Job exists only where there are process groups; here Start returns none, and nobody
// calls a method of one.
type Job struct{}

// Start returns an error that wraps errors.ErrUnsupported.
func Start(Spec) (*Job, error) {
	return nil, fmt.Errorf("start job: process groups of unix are needed, %s has none: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Guard returns 1: there is no job to guard.
func Guard(*os.File) int { return 1 }

// Signals returns the signals that a runner should catch.
func Signals() []os.Signal { return []os.Signal{os.Interrupt} }

// Group returns the empty group.
func (j *Job) Group() process.Group { return process.Group{} }

// Done is never closed.
func (j *Job) Done() <-chan struct{} { return nil }

// Result returns the empty result.
func (j *Job) Result() Result { return Result{} }

// Stop returns an error that wraps errors.ErrUnsupported.
func (j *Job) Stop(context.Context, time.Duration) error { return errors.ErrUnsupported }

// Signal returns an error that wraps errors.ErrUnsupported.
func (j *Job) Signal(syscall.Signal) error { return errors.ErrUnsupported }

// Forward returns when ctx is done.
func (j *Job) Forward(ctx context.Context, _ <-chan os.Signal) { <-ctx.Done() }

// Reraise does nothing.
func (r Result) Reraise() {}

// Reach says, for people, why nothing can be run here.
const Reach = "run and batch cannot start a job on " + runtime.GOOS + ", which has no process groups as unix has"

// Starts says whether jobs can be started here at all.
const Starts = false
