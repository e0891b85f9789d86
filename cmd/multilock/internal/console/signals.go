package console

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/multilock/go/cmd/multilock/job"
)

// Signals is what the process gets from outside. Until a job runs, a signal that
// asks to end ends the command; from then on all of them are the job's.
type Signals struct {
	stop  func()
	toJob chan os.Signal

	mu      sync.Mutex
	handed  bool // a job has them
	pending error
	cancels []context.CancelCauseFunc
}

// CatchSignals begins to catch them.
func CatchSignals() *Signals {
	s := &Signals{toJob: make(chan os.Signal, 16)}
	s.stop = Listen(s.deliver)
	return s
}

// Listen calls f with each signal that is for us or for a job, one after the other,
// until stop is called: then signals have their default effect again. A program that ends
// at once does not wait for that: each signal takes two switches between threads.
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

// OutliveReaders is for what holds locks: that nobody reads its messages any more,
// as when an ssh connection broke, must not end it with locks in its hands. SIGPIPE
// is caught and not ignored, because a job would inherit that.
func OutliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func (s *Signals) deliver(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handed {
		select {
		case s.toJob <- sig:
		default: // the job has sixteen of them to look at
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

// Until returns a context that a signal to end cancels. It is for what goes on
// without a job.
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

// Next is closed when a signal to end comes after this call. It is for what is left to be
// done when a job is over, which an earlier signal may have ended.
func (s *Signals) Next() <-chan struct{} {
	ctx, cancel := context.WithCancelCause(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancels = append(s.cancels, cancel)
	return ctx.Done()
}

// ForJob hands the signals over to a job.
func (s *Signals) ForJob() <-chan os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handed = true
	if again, ok := s.pending.(*SignalError); ok { //nolint:errorlint // made above
		s.toJob <- again.Signal // it came while the job was being started
	}
	return s.toJob
}

// Release lets signals have their default effect again.
func (s *Signals) Release() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.cancels {
		cancel(context.Canceled)
	}
}
