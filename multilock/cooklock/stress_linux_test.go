package cooklock_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/locktest"
)

// stress is how many processes are killed in TestHistoryOfProcesses, at least.
var stress = flag.Int("kills", 8, "how many processes to kill under the register's stress test")

// Processes swap and peek as fast as they can, are stopped and let go on, and are
// killed and replaced. What they say of it must be the history of one register.
func TestHistoryOfProcesses(t *testing.T) {
	const enough = 300
	base := quick(t)
	var all []*child
	var events []locktest.SwapEvent
	for confirmed := 0; confirmed < enough; {
		all = append(all, disturb(t, *stress, func(n int) *child {
			return start(t, "swapper", part{Base: base, Who: fmt.Sprint("p", n), Swaps: 1 << 30, Network: n%2 == 1})
		})...)
		events = nil
		for _, c := range all {
			events = append(events, c.events(t)...)
		}
		var err error
		confirmed, err = locktest.CheckSwaps(events)
		require.NoError(t, err)
	}
	t.Logf("%d processes, %d events", len(all), len(events))
	follow(t, base, events)
}

const crew = 4

// disturb keeps a crew of processes at work, stops and continues them, and kills so
// many of them. In the end all are killed. It returns all that there ever were.
func disturb(t *testing.T, kills int, begin func(n int) *child) []*child {
	t.Helper()
	var all, at []*child
	hire := func() *child {
		c := begin(len(all))
		all = append(all, c)
		return c
	}
	for range crew {
		at = append(at, hire())
	}
	for killed := 0; killed < kills; {
		i := rand.IntN(crew)
		if rand.IntN(4) == 0 {
			at[i].End()
			at[i] = hire()
			killed++
			continue
		}
		at[i].Signal(t, syscall.SIGSTOP)
		require.Equal(t, actor.Stopped, at[i].Await(t))
		pass(rand.N(60 * time.Millisecond)) // the others go on
		at[i].Signal(t, syscall.SIGCONT)
		pass(rand.N(60 * time.Millisecond))
	}
	for _, c := range at {
		c.End()
	}
	return all
}

// pass is the time for which processes are left alone. Nothing depends on it.
func pass(d time.Duration) { <-time.After(d) }
