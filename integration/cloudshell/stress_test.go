package cloudshell_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/internal/testkit/worker"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
	"github.com/multilock/go/multilock/source"
)

const stressTTL = 3 * time.Second

// Eight workers on a server that loses requests and answers, or carries them out
// later; beside them holders that end without a word. No two believe in the lock at a
// time.
func TestStressWithFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t, serverOptions())
	l.opt.Timeout = 2 * time.Second
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l.server.Inject(fakecloudshell.Random(seed, fakecloudshell.Odds{
		Lost: 0.03, Failed: 0.02, Dropped: 0.02, Unavailable: 0.02, Late: 0.02, Later: 200 * time.Millisecond,
	}))
	history := worker.NewHistory(t, io.Discard)
	over, cancel := context.WithTimeout(t.Context(), 10*stressTTL)
	defer cancel()
	var all sync.WaitGroup
	for i := range uint64(8) {
		w := worker.Worker{
			Source: l.open(t), Log: locktest.NewRecorder(history.In, fmt.Sprint("worker ", i)),
			Rand: rand.New(rand.NewPCG(seed, i)), Names: []string{"MUTEX"}, TTL: stressTTL,
		}
		all.Go(func() { assert.NoError(t, w.Work(over)) })
	}
	silent, log := l.open(t), locktest.NewRecorder(history.In, "silent")
	all.Go(func() { assert.NoError(t, endWithoutAWord(over, silent, log)) })
	all.Wait()
	history.Close(t)
	events := history.All()
	require.NoError(t, locktest.Check(events))
	require.True(t, slices.ContainsFunc(events, func(e locktest.Event) bool { return e.Kind == locktest.Released }), "nobody has worked")
}

// endWithoutAWord takes the lock now and then. Nothing more is sent under it then, and
// nothing is believed.
func endWithoutAWord(over context.Context, src source.Source, log *locktest.Recorder) error {
	for worker.Pause(over, stressTTL) {
		start := locktest.Now()
		lock, err := multilock.Acquire(over, src, "MUTEX", multilock.Options{TTL: stressTTL})
		if err != nil {
			continue // the server was away, or nobody knows
		}
		if err := errors.Join(log.Note(lock, locktest.Acquired, start), log.Note(lock, locktest.Lost, 0), lock.Detach()); err != nil {
			return err
		}
	}
	return nil
}
