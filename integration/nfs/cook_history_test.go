package nfs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/locktest"
)

// Processes on all hosts swap, and are killed and stopped in the middle of it; in a
// long run hosts crash, cables are cut, and the server restarts besides. What all of
// them tell is the history of one register. A swap of a dead process took effect or
// did not, at any time after its beginning; one of a process that stood still, like
// any other, between its beginning and its answer.
func TestCookHistoryOfProcesses(t *testing.T) {
	needLab(t)
	c := newCookTrial(t, jobsAtLength(1, 2))
	strikes := []func(host){c.crash, c.cut, c.restart}
	for n := range jobsAtLength(3, 24) {
		c.round(n, jobsAtLength(0, 1))
		if n%4 == 3 {
			strikes[n/4%len(strikes)](hosts()[c.rng.IntN(len(hosts()))])
		}
	}
	events := c.end()

	last := hostSwapper{register: cookRegister(t, c.place, hosts()[0]), name: "last", tell: func(e locktest.SwapEvent) error {
		events = append(events, e)
		return nil
	}}
	require.NoError(t, last.round(within(t), 0))
	confirmed, err := locktest.CheckSwaps(events)
	require.NoError(t, err)
	dead, took := unanswered(events)
	t.Logf("%d swaps by %d processes, %+v, %d swaps without an answer, %d of which were seen", confirmed, len(c.all), c.cookBlows, dead, took)
	require.Positive(t, dead, "nobody died in the middle of a swap: nothing is shown")
	c.requireAllShow(events[len(events)-1])
}

// unanswered counts the swaps whose process was not told what became of them, and
// those among them whose value somebody saw.
func unanswered(events []locktest.SwapEvent) (swaps, seen int) {
	open, shown := map[string]bool{}, map[string]bool{}
	for _, e := range events {
		switch e.Op {
		case "begin":
			open[e.Value] = true
		case "end", "fail":
			delete(open, e.Value)
			shown[e.Old] = true
		case "peek":
			shown[e.Value] = true
		}
	}
	for value := range open {
		if shown[value] {
			seen++
		}
	}
	return len(open), seen
}

// requireAllShow checks that all hosts are shown what was swapped in last, and that
// nothing else is left of the register.
func (c *cookTrial) requireAllShow(last locktest.SwapEvent) {
	c.t.Helper()
	for _, h := range hosts() {
		value, number, err := cookRegister(c.t, c.place, h).Peek(within(c.t))
		require.NoError(c.t, err)
		require.Equal(c.t, last.Value, string(value), h.name)
		require.Equal(c.t, last.Number, number, h.name)
	}
	require.Equal(c.t, []string{"nightly"}, c.entries(c.t, ".multilock", "groups", ".locks", "done"))
}
