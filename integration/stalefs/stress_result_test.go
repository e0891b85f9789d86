//go:build linux

package stalefs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
)

// result is the witness, which is no part of the file system, and the history.
type result struct {
	violated chan struct{} // closed at the first fault that was found

	mu      sync.Mutex
	inside  map[string]presence // by lock
	history bytes.Buffer
	faults  []error
}

// presence is that somebody is inside, until some time at the latest.
type presence struct {
	worker string
	until  time.Duration
}

func newResult() *result {
	return &result{violated: make(chan struct{}), inside: map[string]presence{}}
}

// enter says that a worker is inside now. Somebody else's presence convicts,
// unless its time is up: then it is that of somebody who lost the lock, and does
// nothing under it any more.
func (r *result) enter(name, worker string, until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := locktest.Now()
	if until <= now {
		return // it was stopped on the way here, and does nothing under the lock
	}
	if other := r.inside[name]; other.worker != "" && other.worker != worker && other.until > now {
		r.add(fmt.Errorf("%s: %s came in while %s was there for %s more", name, worker, other.worker, other.until-now))
	}
	r.inside[name] = presence{worker, until}
}

func (r *result) leave(name, worker string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside[name].worker == worker {
		delete(r.inside, name)
	}
}

// Write takes lines of the history.
func (r *result) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history.Write(line)
}

func (r *result) events(t testing.TB) []locktest.Event {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	events, err := locktest.ReadEvents(bytes.NewReader(r.history.Bytes()))
	require.NoError(t, err)
	return events
}

func (r *result) must(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(err)
	}
}

func (r *result) add(err error) {
	if len(r.faults) == 0 {
		close(r.violated)
	}
	r.faults = append(r.faults, err)
}

func (r *result) err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.faults...)
}

// untilViolated ends with the first fault.
func (r *result) untilViolated(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-r.violated:
		case <-ctx.Done():
		}
	}()
	return ctx
}
