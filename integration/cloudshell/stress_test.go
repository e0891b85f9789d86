package cloudshell_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
	"github.com/multilock/go/multilock/locktest"
)

const (
	crowd       = 8
	crowdRounds = 10
	stressTTL   = 3 * time.Second
)

// Eight contenders on a server that loses requests and answers, or carries them out
// later; some holders end without a word. No two believe in the lock at a time.
func TestStressWithFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t, serverOptions())
	l.opt.Timeout = 2 * time.Second
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l.server.Inject(fakecloudshell.Random(seed, fakecloudshell.Odds{
		Lost: 0.03, Failed: 0.02, Dropped: 0.02, Unavailable: 0.02, Late: 0.02, Later: 200 * time.Millisecond,
	}))
	w := &witness{T: t}
	var all sync.WaitGroup
	for i := range crowd {
		c := contestant{witness: w, src: l.open(t), recorder: locktest.NewRecorder(w, fmt.Sprint("contestant ", i))}
		all.Go(c.play)
	}
	all.Wait()
	events, err := locktest.ReadEvents(&w.history)
	require.NoError(t, err)
	require.NoError(t, locktest.Check(events))
	require.Positive(t, w.done.Load())
	t.Logf("%d rounds were worked through, %d holders ended without a word, %d answers were unknown, %d locks lost", w.done.Load(), w.killed.Load(), w.unsure.Load(), w.lost.Load())
}

// witness stands outside and sees who works under the lock.
type witness struct {
	*testing.T
	mu      sync.Mutex
	history bytes.Buffer
	inside  atomic.Int32

	done, killed, unsure, lost atomic.Int64
}

// Write takes the recorders' lines.
func (w *witness) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.history.Write(line)
}

type contestant struct {
	*witness
	src      *cloudshell.Source
	recorder *locktest.Recorder
}

func (c contestant) play() {
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	for round := range crowdRounds {
		if err := c.round(ctx, round); err != nil {
			c.Errorf("round %d: %v", round, err)
		}
	}
}

// round takes the lock, whatever it takes, and works under it.
func (c contestant) round(ctx context.Context, round int) error {
	for ctx.Err() == nil {
		start := locktest.Now()
		lock, err := multilock.Acquire(ctx, c.src, "MUTEX", multilock.Options{TTL: stressTTL})
		if err != nil {
			c.unsure.Add(1)
			continue // the server was away, or nobody knows
		}
		e := locktest.Event{Kind: locktest.Acquired, Name: "MUTEX", Token: lock.Record().Token, Start: start, Until: locktest.Now() + lock.Remaining()}
		if err := c.recorder.Record(e); err != nil {
			return err
		}
		return c.hold(ctx, lock, round)
	}
	return ctx.Err()
}

func (c contestant) hold(ctx context.Context, lock *multilock.Lock, round int) error {
	company := c.inside.Add(1)
	runtime.Gosched()
	believes := lock.Remaining() > 0
	c.inside.Add(-1)
	if company != 1 && believes {
		return fmt.Errorf("%d are inside at a time", company)
	}
	c.done.Add(1)
	e := locktest.Event{Name: "MUTEX", Token: lock.Record().Token}
	if round%5 == 4 { // it ends without a word: nothing more is sent, and nothing is believed
		e.Kind = locktest.Lost
		c.killed.Add(1)
		return errors.Join(c.recorder.Record(e), lock.Detach())
	}
	e.Kind = locktest.Releasing
	if err := c.recorder.Record(e); err != nil {
		return err
	}
	err := lock.Release(ctx)
	for range 20 {
		if !errors.Is(err, multilock.ErrUnsure) {
			break
		}
		err = lock.Release(ctx)
	}
	switch {
	case err == nil:
		e.Kind = locktest.Released
		return c.recorder.Record(e)
	case errors.Is(err, multilock.ErrLost):
		c.lost.Add(1) // a late removal of an earlier holder's, or too long away
		return nil
	}
	return err
}
