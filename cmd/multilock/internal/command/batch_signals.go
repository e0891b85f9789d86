package command

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/multilock/go/cmd/multilock/internal/console"
	"github.com/multilock/go/cmd/multilock/internal/runner"
	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/lockgroup/batch"
)

// stopSignals ends a batch: the first SIGINT or SIGTERM lets it take no more jobs,
// the second ends those that run, and so does at once what says that the terminal
// is gone or that there is no time.
type stopSignals struct {
	ctx    context.Context //nolint:containedctx // the batch's lifetime
	cancel context.CancelCauseFunc
	stop   func()
	first  error

	told, toldAll chan struct{} // closed by the first signal, and by the first SIGTERM if it is that
}

func catchStops(ctx context.Context, e *Env, drain func()) *stopSignals {
	s := &stopSignals{told: make(chan struct{}), toldAll: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	s.stop = console.Listen(func(sig os.Signal) { s.deliver(e, sig, drain) })
	console.OutliveReaders()
	return s
}

func (s *stopSignals) deliver(e *Env, sig os.Signal, drain func()) {
	if !job.Asks(sig) {
		return
	}
	first := s.first == nil
	s.first = console.Signalled(sig)
	if first {
		close(s.told)
	}
	if first && (sig == syscall.SIGINT || sig == syscall.SIGTERM) {
		drain()
		if sig == syscall.SIGTERM {
			close(s.toldAll)
		}
		e.Say("taking no more jobs, and waiting for those that run here; once more ends them")
		return
	}
	s.cancel(s.first)
	e.Say("ending the jobs that run here; they will be run again")
}

// jobsTold is when the jobs were told to end, too. Schedulers and service managers send
// SIGTERM to all processes of an allocation or a service; SIGINT is for us, whose jobs
// are not in the foreground of the terminal.
func (s *stopSignals) jobsTold() runner.Told { return runner.Told{Any: s.told, Job: s.toldAll} }

// release lets signals have their default effect again. A batch that was drained
// was ended by the signal.
func (s *stopSignals) release(err error) error {
	s.stop()
	s.cancel(nil)
	if errors.Is(err, batch.ErrDrained) && s.first != nil {
		return s.first
	}
	return err
}
