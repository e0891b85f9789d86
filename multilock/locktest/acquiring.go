package locktest

import (
	"context"
	"errors"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/source"
)

func testAcquireReleaseAcquire(p *place) {
	a, b := p.open(), p.open()
	p.requireFree(b, "nightly")
	tokens := map[string]bool{}
	for _, src := range []source.Source{a, b, a} {
		lock := p.try(src, "nightly", multilock.Options{})
		record := lock.Record()
		require.Equal(p, "nightly", record.Name)
		require.NotEmpty(p, record.Token)
		require.False(p, tokens[record.Token], "every acquisition has a token of its own")
		tokens[record.Token] = true
		require.Positive(p, lock.Remaining())
		require.NoError(p, lock.Verify(p.ctx))
		p.release(lock)
		require.ErrorIs(p, context.Cause(lock.Context()), source.ErrReleased)
		p.requireFree(a, "nightly")
	}
}

func testHeldNamesTheHolder(p *place) {
	holder, rival := p.open(), p.open()
	lock := p.try(holder, "nightly", multilock.Options{User: "ada", Command: "rsync -a /src /dst"})
	_, err := multilock.TryAcquire(p.ctx, rival, "nightly", multilock.Options{})
	var held *multilock.HeldError
	require.ErrorAs(p, err, &held)
	require.Equal(p, "nightly", held.Name)
	seen := held.Observation
	require.Equal(p, source.StateHeld, seen.State)
	require.NotEmpty(p, seen.Why)
	require.Equal(p, lock.Record().Token, seen.Record.Token)
	require.Equal(p, lock.Record().Holder, seen.Record.Holder)
	require.Equal(p, lock.Record().TTL, seen.Record.TTL)
	require.NotEmpty(p, seen.Record.Holder.Host)
	require.Equal(p, "ada", seen.Record.Holder.User)
	require.Equal(p, "rsync -a /src /dst", seen.Record.Holder.Command)
	require.Empty(p, seen.Record.Foreign)

	inspected, err := multilock.Inspect(p.ctx, rival, "nightly", source.StalePolicy{})
	require.NoError(p, err)
	require.Equal(p, source.StateHeld, inspected.State)
	require.Equal(p, seen.Record, inspected.Record)
	p.release(lock)
}

func testOneOfManyWins(p *place) {
	p.release(p.oneOfMany())
	p.requireFree(p.open(), "nightly")
}

// oneOfMany has many contenders try a free lock at once: one acquires it.
func (p *place) oneOfMany() *multilock.Lock {
	p.Helper()
	const rivals = 12
	start := make(chan struct{})
	results := make(chan error, rivals)
	locks := make(chan *multilock.Lock, rivals)
	for range rivals {
		src := p.open()
		go func() {
			<-start
			lock, err := multilock.TryAcquire(p.ctx, src, "nightly", multilock.Options{})
			if err == nil {
				locks <- lock
			}
			results <- err
		}()
	}
	close(start)
	for range rivals {
		if err := <-results; err != nil {
			require.ErrorIs(p, err, source.ErrHeld)
		}
	}
	require.Len(p, locks, 1)
	return <-locks
}

func testWaiterGetsTheLock(p *place) {
	holder, waiter := p.open(), newRefusals(p.open())
	lock := p.try(holder, "nightly", multilock.Options{})
	got := make(chan error, 1)
	go func() {
		next, err := multilock.Acquire(p.ctx, waiter, "nightly", multilock.Options{})
		if err == nil {
			err = errors.Join(next.Verify(p.ctx), next.Release(p.ctx))
		}
		got <- err
	}()
	waiter.await(p)
	p.release(lock)
	require.NoError(p, <-got)
	p.requireFree(holder, "nightly")
}

func testCancelledWaiterLeavesNothing(p *place) {
	holder, waiter := p.open(), newRefusals(p.open())
	lock := p.try(holder, "nightly", multilock.Options{})
	ctx, cancel := context.WithCancel(p.ctx)
	got := make(chan error, 1)
	go func() {
		_, err := multilock.Acquire(ctx, waiter, "nightly", multilock.Options{})
		got <- err
	}()
	waiter.await(p)
	cancel()
	require.ErrorIs(p, <-got, context.Canceled)

	require.NoError(p, lock.Verify(p.ctx))
	p.requireNames(holder, "nightly")
	p.release(lock)
	p.requireNames(holder)
	p.release(p.try(holder, "nightly", multilock.Options{}))
}

func testContenderLeavesNothing(p *place) {
	src := p.open()
	contender, err := src.Contend(p.ctx, "nightly", p.claim(), source.StalePolicy{})
	require.NoError(p, err)
	p.requireNames(p.open())
	p.requireFree(p.open(), "nightly")
	require.NoError(p, contender.Close())
	p.requireNames(p.open())
}

func testLocksAreIndependent(p *place) {
	src := p.open()
	one := p.try(src, "one", multilock.Options{})
	two := p.try(src, "two", multilock.Options{})
	p.requireHeld(p.open(), "one", one.Record().Token)
	p.release(one)
	p.requireFree(p.open(), "one")
	p.requireHeld(p.open(), "two", two.Record().Token)
	p.release(two)
}

// refusals signals that an attempt found the lock held, so that a test can wait until its waiter waits.
type refusals struct {
	source.Source
	met  chan struct{}
	once sync.Once
}

func newRefusals(src source.Source) *refusals {
	return &refusals{Source: src, met: make(chan struct{})}
}

func (r *refusals) await(p *place) {
	p.Helper()
	select {
	case <-r.met:
	case <-p.ctx.Done():
		require.Fail(p, "the waiter was never refused")
	}
}

// Contend implements source.Source.
func (r *refusals) Contend(ctx context.Context, name string, claim source.Claim, policy source.StalePolicy) (source.Contender, error) {
	contender, err := r.Source.Contend(ctx, name, claim, policy)
	if err != nil {
		return nil, err
	}
	return &refused{Contender: contender, by: r}, nil
}

type refused struct {
	source.Contender
	by *refusals
}

func (c *refused) Try(ctx context.Context) (source.Lease, error) {
	lease, err := c.Contender.Try(ctx)
	if errors.Is(err, source.ErrHeld) {
		c.by.once.Do(func() { close(c.by.met) })
	}
	return lease, err
}
