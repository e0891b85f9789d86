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

// Job exists only where there are process groups; here Start returns none.
type Job struct{ done chan struct{} }

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

// Done is closed when the command has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// Result waits for Done.
func (j *Job) Result() Result {
	<-j.done
	return Result{}
}

// Signal returns an error that wraps errors.ErrUnsupported.
func (j *Job) Signal(syscall.Signal) error {
	return fmt.Errorf("signal job: %w", errors.ErrUnsupported)
}

// Stop returns an error that wraps errors.ErrUnsupported.
func (j *Job) Stop(context.Context, time.Duration) error {
	return fmt.Errorf("stop job: %w", errors.ErrUnsupported)
}

// Forward returns when ctx is done or the channel is closed.
func (j *Job) Forward(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case _, open := <-signals:
			if !open {
				return
			}
		}
	}
}

// Reraise does nothing.
func (r Result) Reraise() {}
