package cloudshell_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/locktest"
)

// What every lock source promises, on servers that differ in what nobody knows
// about the real one.
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

// In a group all aliases begin with its name.
func TestConformanceOfAGroup(t *testing.T) {
	t.Parallel()
	locktest.Run(t, fixture(serverOptions(), "night [run].1"))
}

// A server at a real distance takes a second for each request: whatever was read is
// old, and a holder may have given a sign of life since. With -short it takes less.
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
		"modern": {UnknownAliases: fakecloudshell.RemoveNone},
		"old": {
			UnknownAliases: fakecloudshell.RemoveQuiet, DeadTokens: fakecloudshell.Code118, CacheFor: -1, CloseConnections: true, NoEmptyInfo: true,
		},
	}
}

func fixture(opt fakecloudshell.Options, group string) locktest.Fixture {
	return locktest.Fixture{
		TTL: 3 * time.Second, Fences: true, Deaths: true,
		Odd:     []string{"tab\tand\nnewline", "\xff\xfe not utf-8", "nul\x00byte", ".", "..", "a/b", "MUTEX", "MUTEX.TURN.1", "TURN.1", "x.RESULT.y.0", "MULTILOCK", "[54]"},
		Refused: []string{strings.Repeat("x", 256), strings.Repeat("\u20ac", 82)},
		Place: func(t testing.TB) func() multilock.Source {
			l := newLab(t, opt)
			l.opt.Group = group
			t.Cleanup(func() { requireTidy(t, l) })
			return func() multilock.Source { return l.ready(t) }
		},
	}
}

// requireTidy: nothing is left but one service for each name that was ever used, a
// few of results, and what an attempt left that was cut off by the test's end.
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
