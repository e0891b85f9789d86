package nfs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
)

// price is how many requests something may cost with v4.2, v4.1 and v3.
type price struct {
	what string
	most [3]float64
	once bool // it cannot be repeated in one place
	call func(t *testing.T, b bench) func()
}

// bench is where the cost of something is measured: a place, a host whose
// requests are counted, and another host.
type bench struct {
	place
	host, other host
	src         *fslock.Source
}

// samples are enough to tell a request that is always sent from one that is not.
const samples = 10

// TestCost holds what the lock does to the number of requests that it costs. On
// the machine that the lab emulates a request takes a few milliseconds, on a busy
// network as well.
func TestCost(t *testing.T) {
	needLab(t)
	var table strings.Builder
	for _, p := range prices() {
		fmt.Fprintf(&table, "%s\n", p.what)
		for i, h := range hosts() {
			t.Run(p.what+"/v"+h.version, func(t *testing.T) {
				spent := p.measure(t, h, hosts()[(i+1)%3])
				fmt.Fprintf(&table, "    v%-4s %s\n", h.version, spent)
				require.LessOrEqual(t, spent.total(), p.most[i], "v%s: %s", h.version, spent)
			})
		}
	}
	t.Logf("requests\n%s", table.String())
}

func (p price) measure(t *testing.T, h, other host) requests {
	pl := newPlace(t)
	f := p.call(t, bench{pl, h, other, pl.source(t, h)})
	if p.once {
		before := h.requests(t)
		f()
		spent := requests{}
		for op, count := range h.requests(t) {
			if more := count - before[op]; more > 0 {
				spent[op] = more
			}
		}
		return spent
	}
	return h.cost(t, samples, f)
}

func prices() []price {
	return []price{
		{what: "acquire and release", most: [3]float64{12, 12, 12}, call: costOfCycle},
		{what: "a waiter's further attempt", most: [3]float64{1, 1, 1}, call: costOfAttempt},
		{what: "a sign of life", most: [3]float64{2, 2, 3}, call: costOfRenew},
		{what: "refused, with the holder's name", most: [3]float64{25, 25, 25}, call: costOfRefusal},
		{what: "a further look", most: [3]float64{2, 2, 2}, call: costOfLook},
		{what: "the first fencing number of a place", most: [3]float64{40, 40, 40}, once: true, call: costOfFence},
		{what: "a further fencing number", most: [3]float64{14, 14, 14}, call: costOfFence},
		{what: "a look at whether a group is empty", most: [3]float64{1, 1, 1}, call: costOfBarrier},
	}
}

func costOfCycle(t *testing.T, b bench) func() {
	return func() {
		lock, err := multilock.TryAcquire(context.Background(), b.src, "job", multilock.Options{TTL: long})
		require.NoError(t, err)
		require.NoError(t, lock.Release(context.Background()))
	}
}

func costOfAttempt(t *testing.T, b bench) func() {
	try(t, b.source(t, b.other), "job", multilock.Options{TTL: long})
	contender, err := b.src.Contend(t.Context(), "job", multilock.Claim{TTL: long}, multilock.Patience{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = contender.Close() })
	return func() {
		_, err := contender.Try(context.Background())
		require.ErrorIs(t, err, multilock.ErrHeld)
	}
}

func costOfRenew(t *testing.T, b bench) func() {
	lease := plant(t, b.src, "job", long)
	return func() { require.NoError(t, lease.Renew(context.Background())) }
}

func costOfRefusal(t *testing.T, b bench) func() {
	try(t, b.source(t, b.other), "job", multilock.Options{TTL: long})
	return func() {
		_, err := multilock.TryAcquire(context.Background(), b.src, "job", multilock.Options{TTL: long})
		require.ErrorIs(t, err, multilock.ErrHeld)
	}
}

func costOfLook(t *testing.T, b bench) func() {
	try(t, b.source(t, b.other), "job", multilock.Options{TTL: long})
	observer, err := b.src.Observe(t.Context(), "job", multilock.Patience{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = observer.Close() })
	return func() {
		seen, err := observer.Look(context.Background())
		require.NoError(t, err)
		require.Equal(t, multilock.Held, seen.State)
	}
}

func costOfFence(t *testing.T, b bench) func() {
	lease := plant(t, b.src, "job", long)
	return func() {
		_, err := lease.Fence(context.Background())
		require.NoError(t, err)
	}
}

func costOfBarrier(t *testing.T, b bench) func() {
	try(t, b.source(t, b.other), "job", multilock.Options{TTL: long})
	base := b.dir(t, b.host)
	return func() { require.Error(t, base.Rmdir(fslock.DefaultGroup)) }
}

// A look at each of a thousand held locks costs a bounded number of requests for each.
func TestCostOfStatus(t *testing.T) {
	needLab(t)
	if testing.Short() {
		t.Skip("takes minutes")
	}
	const locks = 1000
	for i, h := range hosts() {
		p := newPlace(t)
		holder := p.source(t, hosts()[(i+1)%3])
		for n := range locks {
			plant(t, holder, fmt.Sprintf("job%04d", n), long)
		}
		src := p.source(t, h)
		before := h.requests(t).total()
		names, err := src.Names(t.Context())
		require.NoError(t, err)
		require.Len(t, names, locks)
		for _, name := range names {
			seen, err := multilock.Inspect(t.Context(), src, name, multilock.Patience{})
			require.NoError(t, err)
			require.Equal(t, multilock.Held, seen.State)
		}
		each := (h.requests(t).total() - before) / locks
		t.Logf("v%s: %s requests for each of %d locks", h.version, number(each), locks)
		require.LessOrEqual(t, each, 8.0)
	}
}

// The command line as a whole process, with the server's clock and the history.
func TestCostOfCommand(t *testing.T) {
	needLab(t)
	const program = "/guest/multilock"
	if _, err := os.Stat(program); err != nil {
		t.Skip("integration/nfs/run builds the command and passes it on")
	}
	for _, h := range hosts() {
		p := newPlace(t)
		spent := h.cost(t, samples, func() {
			out, err := exec.Command("on", h.name, program, "-d", p.on(h), "run", "-n", "job", "--", "true").CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
		t.Logf("v%s: run -- true: %s", h.version, spent)
		require.LessOrEqual(t, spent.total(), 70.0)
	}
}
