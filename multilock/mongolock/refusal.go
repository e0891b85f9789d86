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

// The driver looks for a server until its time is over, whatever the hosts say. Where
// every host of the URL refuses the connection, and none has ever accepted one, nobody
// listens: that is told at once. Once a server was there it is waited for.

// reach dials for the driver, and watches for that.
type reach struct {
	net.Dialer
	hosts int // of the URL

	mu      sync.Mutex
	reached bool
	refused map[string]error
	all     chan struct{} // closed when every host has refused; nil while nobody waits
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
		delete(r.refused, address) // it may be slow to come up
	}
	r.tell()
}

// tell ends the wait of who asks, if there is nobody to wait for. Called with r.mu.
func (r *reach) tell() {
	if r.all != nil && !r.reached && len(r.refused) >= r.hosts {
		close(r.all)
		r.all = nil
	}
}

// wait gives a channel that is closed when every host has refused; done forgets what they said.
func (r *reach) wait() (all <-chan struct{}, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := make(chan struct{})
	r.all = c
	r.tell()
	return c, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all, r.refused = nil, map[string]error{}
	}
}

// what the hosts said, for people.
func (r *reach) what() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var said []string
	for address, err := range r.refused {
		said = append(said, fmt.Sprintf("%s: %v", address, err))
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

// isRefusal also knows the number that Windows has for it.
func isRefusal(err error) bool {
	const windowsRefused = syscall.Errno(10061)
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, windowsRefused)
}

// unlessRefused has a command carried out, but gives up when every host refuses.
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
	hosts := s.reach.what()
	cancel()
	if err := <-answered; err != nil {
		return &remote.Unreachable{Ways: hosts, Err: err}
	}
	return nil
}
