package mongolock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/multilock/go/multilock/source/remote"
)

// The driver tries to select a server until its time limit, whatever errors the hosts return. If
// every host of the URL refuses the connection, and none has ever accepted one, no server is
// running, and reach reports that at once. Once a server was reached, the driver waits.

// reach is the driver's dialer. It watches for refused connections.
type reach struct {
	net.Dialer
	hosts int // number of hosts in the URL

	mu      sync.Mutex
	reached bool
	refused map[string]error
	all     chan struct{} // closed when every host has refused; nil while not waiting
}

// DialContext implements options.ContextDialer.
func (r *reach) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := r.Dialer.DialContext(ctx, network, address)
	r.note(address, err)
	return conn, err
}

func (r *reach) note(address string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.reached = true
	case isRefusal(err):
		r.refused[address] = err
	default:
		delete(r.refused, address) // the host may be starting
	}
	r.closeIfRefused()
}

// closeIfRefused ends the wait if every host has refused. It is called with r.mu.
func (r *reach) closeIfRefused() {
	if r.all != nil && !r.reached && len(r.refused) >= r.hosts {
		close(r.all)
		r.all = nil
	}
}

// wait returns a channel that is closed when every host has refused; done clears the errors.
func (r *reach) wait() (all <-chan struct{}, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan struct{})
	r.all = c
	r.closeIfRefused()
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all, r.refused = nil, map[string]error{}
	}
}

// errors returns the errors of the hosts for users.
func (r *reach) errors() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var said []string
	for address, err := range r.refused {
		said = append(said, fmt.Sprintf("%s: %v", address, err))
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

// isRefusal recognises a refused connection, also by the error number of Windows.
func isRefusal(err error) bool {
	const windowsRefused = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, windowsRefused)
}

// unlessRefused runs a command, but fails when every host refuses the connection.
func (s *server) unlessRefused(ctx context.Context, command func(context.Context) error) error {
	if s.reach == nil {
		return command(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all, done := s.reach.wait()
	defer done()
	answered := make(chan error, 1)
	go func() { answered <- command(ctx) }()
	select {
	case err := <-answered:
		return err
	case <-all:
	}
	hosts := s.reach.errors()
	cancel()
	if err := <-answered; err != nil {
		return &remote.Unreachable{Ways: hosts, Err: err}
	}
	return nil
}
