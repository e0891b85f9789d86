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
	incoming chan os.Signal
	toJob    chan os.Signal
	done     chan struct{}

	mu      sync.Mutex
	handed  bool // a job has them
	pending error
	cancels []context.CancelCauseFunc
}

// CatchSignals begins to catch them.
func CatchSignals() *Signals {
	s := &Signals{incoming: make(chan os.Signal, 16), toJob: make(chan os.Signal, 16), done: make(chan struct{})}
	signal.Notify(s.incoming, job.Signals()...)
	go s.run()
	return s
}

// OutliveReaders is for what holds locks: that nobody reads its messages any more,
// as when an ssh connection broke, must not end it with locks in its hands. SIGPIPE
// is caught and not ignored, because a job would inherit that.
func OutliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func (s *Signals) run() {
	for {
		select {
		case <-s.done:
			return
		case sig := <-s.incoming:
			s.deliver(sig)
		}
	}
}

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

// Release lets signals have their default effect again. A program that ends at once
// does not wait for that: each signal takes two switches between threads.
func (s *Signals) Release() {
	go signal.Stop(s.incoming)
	close(s.done)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.cancels {
		cancel(context.Canceled)
	}
}
