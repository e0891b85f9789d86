package console

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/multilock/go/cmd/multilock/job"
)

// Signals receives this process's signals. Until a job runs, a signal to end ends the command; after
// that all signals are passed on to the job.
type Signals struct {
	stop  func()
	toJob chan os.Signal

	mu      sync.Mutex
	handed  bool // a job receives them
	pending error
	cancels []context.CancelCauseFunc
}

// CatchSignals starts to catch signals.
func CatchSignals() *Signals {
	s := &Signals{toJob: make(chan os.Signal, 16)}
	s.stop = Listen(s.deliver)
	return s
}

// Listen calls f with each signal for this process or its job, one at a time, until stop is called;
// after that signals have their default effect. stop resets them in the background, because each
// signal takes two switches between threads, and a program that ends at once need not wait.
func Listen(f func(os.Signal)) (stop func()) {
	incoming, end, ended := make(chan os.Signal, 16), make(chan struct{}), make(chan struct{})
	signal.Notify(incoming, job.Signals()...)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case sig := <-incoming:
				f(sig)
			}
		}
	}()
	return func() {
		go signal.Stop(incoming)
		close(end)
		<-ended
	}
}

// OutliveReaders keeps a process that holds locks alive when its messages lose their reader, as after
// an ssh connection breaks. It catches SIGPIPE instead of ignoring it, because a job would inherit an
// ignored signal.
func OutliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func (s *Signals) deliver(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handed {
		select {
		case s.toJob <- sig:
		default: // sixteen signals wait for the job already
		}
	}
	if !job.Asks(sig) {
		return
	}
	s.pending = Signalled(sig)
	for _, cancel := range s.cancels {
		cancel(s.pending)
	}
}

// Until returns a context that a signal to end cancels, for work without a job.
func (s *Signals) Until(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		cancel(s.pending)
	}
	s.cancels = append(s.cancels, cancel)
	return ctx
}

// Next returns a channel that is closed when a signal to end arrives after this call. It is for the work
// that is left after a job, which an earlier signal may have ended.
func (s *Signals) Next() <-chan struct{} {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels = append(s.cancels, cancel)
	return ctx.Done()
}

// ForJob passes the signals on to a job.
func (s *Signals) ForJob() <-chan os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed = true
	if again, ok := s.pending.(*SignalError); ok { //nolint:errorlint // made above
		s.toJob <- again.Signal // it arrived while the job was being started
	}
	return s.toJob
}

// Release restores the default effect of signals.
func (s *Signals) Release() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.cancels {
		cancel(context.Canceled)
	}
}
