package cloudshell_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
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

// Every policy must pass: policies differ where the real server's behaviour is unknown.
func TestConformance(t *testing.T) {
	for name, policy := range policies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := serverOptions()
			opt.Policy = policy
			locktest.Run(t, fixture(opt, ""))
		})
	}
}

// In a group, all aliases begin with the group's name.
func TestConformanceOfAGroup(t *testing.T) {
	t.Parallel()
	locktest.Run(t, fixture(serverOptions(), "night [run].1"))
}

// A distant server takes a second per request, so everything that was read is old, and a holder may
// have sent a heartbeat since. With -short it takes less.
func TestConformanceFarAway(t *testing.T) {
	t.Parallel()
	opt := serverOptions()
	opt.Latency = time.Second
	if testing.Short() {
		opt.Latency = 300 * time.Millisecond
	}
	f := fixture(opt, "")
	f.TTL, f.Distant = 20*opt.Latency, true
	locktest.Run(t, f)
}

func policies() map[string]fakecloudshell.Policy {
	return map[string]fakecloudshell.Policy{
		"modern": {},
		"old": {
			RemoveQuietly: true, DeadTokens118: true, CacheFor: -1, CloseConnections: true, NoEmptyInfo: true,
		},
	}
}

func fixture(opt fakecloudshell.Options, group string) locktest.Fixture {
	return locktest.Fixture{
		TTL: 3 * time.Second, Fences: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", "nul\x00byte", ".", "..", "a/b", "MUTEX", "MUTEX.TURN.1", "TURN.1", "[54]"},
		Refused: []string{strings.Repeat("x", 256), strings.Repeat("\u20ac", 82)},
		Place: func(t testing.TB) func() multilock.Source {
			l := newLab(t, opt)
			l.opt.Group = group
			t.Cleanup(func() { requireTidy(t, l) })
			return func() multilock.Source { return l.open(t) }
		},
	}
}

// requireTidy requires that only one service is left for each name, plus one of an attempt that the end
// of the test cut off.
func requireTidy(t testing.TB, l *lab) {
	t.Helper()
	turns := map[string]int{}
	for _, alias := range l.aliases() {
		if base, _, found := strings.Cut(alias, ".TURN."); found {
			turns[base]++
		}
	}
	for base, count := range turns {
		require.LessOrEqual(t, count, 2, "turns of %s: %q", base, l.aliases())
	}
}

const stressTTL = 3 * time.Second

// Eight workers share a server that loses requests and replies, or executes requests later, with
// holders that end without a release. No two processes hold the lock at once.
func TestStressWithFaults(t *testing.T) {
	t.Parallel()
	l := newLab(t, serverOptions())
	l.opt.Timeout = 2 * time.Second
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l.server.Inject(random(seed))
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
	require.True(t, slices.ContainsFunc(events, func(e locktest.Event) bool { return e.Kind == locktest.Released }), "no worker has released the lock")
}

// random injects a fault into one request in nine. Which request gets which fault depends on their
// order of arrival.
func random(seed uint64) fakecloudshell.Injector {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 0))
	return func(fakecloudshell.Call) fakecloudshell.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch drawn := rng.IntN(100); {
		case drawn < 3:
			return fakecloudshell.Fault{Reply: fakecloudshell.Dropped}
		case drawn < 5:
			return fakecloudshell.Fault{Status: http.StatusInternalServerError}
		case drawn < 7:
			return fakecloudshell.Fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}
		case drawn < 9:
			return fakecloudshell.Fault{Execute: fakecloudshell.Never, Status: http.StatusServiceUnavailable}
		case drawn < 11:
			later := 1 + time.Duration(rng.Float64()*float64(200*time.Millisecond))
			return fakecloudshell.Fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped, Later: later}
		}
		return fakecloudshell.Fault{}
	}
}

// endWithoutAWord acquires the lock now and then, and abandons it: it sends nothing more, and does not
// rely on the lock.
func endWithoutAWord(over context.Context, src source.Source, log *locktest.Recorder) error {
	for worker.Pause(over, stressTTL) {
		start := locktest.Now()
		lock, err := multilock.Acquire(over, src, "MUTEX", multilock.Options{TTL: stressTTL})
		if err != nil {
			continue // the server was unreachable, or the result is unknown
		}
		if err := errors.Join(log.Note(lock, locktest.Acquired, start), log.Note(lock, locktest.Lost, 0), lock.Detach()); err != nil {
			return err
		}
	}
	return nil
}
