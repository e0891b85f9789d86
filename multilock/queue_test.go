package multilock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

// fakeQueue is a queue whose tickets the test sets, and whose locks are a fake's.
type fakeQueue struct {
	*fake
	names []string
	stale bool // a new ticket is not in the listing
}

func (q *fakeQueue) Contend(ctx context.Context, name string, claim source.Claim, p multilock.StalePolicy) (source.Contender, error) {
	if !q.stale {
		q.names = append(q.names, name)
	}
	return q.fake.Contend(ctx, name, claim, p)
}

func (q *fakeQueue) Queue(string) (source.Queue, error)          { return q, nil }
func (q *fakeQueue) Empty(context.Context) (bool, error)         { return false, nil }
func (q *fakeQueue) Wake() (news <-chan struct{}, stop func())   { return nil, func() {} }
func (q *fakeQueue) Left(string) (<-chan struct{}, func())       { return nil, func() {} }
func (q *fakeQueue) Tidy(context.Context, string) error          { return nil }
func (q *fakeQueue) Close() error                                { return nil }
func (q *fakeQueue) Names(ctx context.Context) ([]string, error) { return q.names, q.do(ctx, "names") }

// newFakeQueue has a queue with an earlier waiter.
func newFakeQueue() *fakeQueue {
	return &fakeQueue{fake: newFake(), names: []string{fmt.Sprintf("%020d-%s", 1, source.NewToken())}}
}

func limited(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// A cached listing of the queue, which lacks the waiter's own ticket, is repeated as rarely as any other.
// Rule: queue
func TestStaleListingOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newFakeQueue()
		q.stale = true
		_, err := multilock.Enqueue(limited(t, time.Minute), q, "nightly", multilock.Options{TTL: ttl})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Less(t, q.count("names"), 200)
	})
}

// An observer is for one goroutine: if a call to it hangs, it is closed when the call returns.
// Rule: none (time limits)
func TestHungLookAtATicket(t *testing.T) {
	for _, where := range []step{look, breaks} {
		t.Run(string(where), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, until := newFakeQueue(), make(chan struct{})
				q.show(node7(multilock.StateDead))
				q.on(where, hangs(until, nil))
				_, err := multilock.Enqueue(limited(t, time.Minute), q, "nightly", multilock.Options{TTL: ttl})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				assert.Equal(t, 1, q.count(closes), "the attempt at the ticket")
				close(until)
				synctest.Wait()
				require.Equal(t, 2, q.count(closes))
			})
		})
	}
}

// Rule: none (options)
func TestSourceWithoutAQueue(t *testing.T) {
	_, err := multilock.Acquire(t.Context(), newFake(), "nightly", multilock.Options{Fair: true})
	require.ErrorIs(t, err, multilock.ErrUnsupported)
	require.ErrorContains(t, err, `join the queue for lock "nightly"`)
}

// Rule: none (messages)
func TestQueuedErrorSaysWhoIsAhead(t *testing.T) {
	require.EqualError(t, &multilock.QueuedError{Name: "x", Ahead: 1, Next: node7(multilock.StateHeld)},
		`number 2 in the queue for lock "x", behind node7 pid 4711 by ada: rsync`)
	require.EqualError(t, &multilock.QueuedError{Name: "x", Ahead: 3}, `number 4 in the queue for lock "x"`)
}
