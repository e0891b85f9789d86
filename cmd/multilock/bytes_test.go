//go:build unix

package main_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/names"
)

// Names are bytes: no command confuses two of them, and a rejected name is rejected with a reason.
// MULTILOCK_TEST_NAMES sets how long random names are tested ("10m").
func TestNoTwoNamesMeet(t *testing.T) {
	t.Parallel()
	long, _ := time.ParseDuration(os.Getenv("MULTILOCK_TEST_NAMES"))
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number
	r := rand.New(rand.NewPCG(seed, 0))   //nolint:gosec // names
	apart, refused := 0, 0
	for began, n := time.Now(), 0; n < 12 || time.Since(began) < long; n++ {
		a, b := names.Pair(r)
		if keepApart(t, a, b) {
			apart++
		} else {
			refused++
		}
		if t.Failed() {
			t.Fatalf("seed %d: %q and %q", seed, a, b)
		}
	}
	t.Logf("%d pairs were kept apart, %d refused", apart, refused)
}

// keepApart uses one name for a lock, a group and a result, and looks for them under the other name.
func keepApart(t *testing.T, a, b string) bool {
	t.Helper()
	s := newStation(t)
	defer func() { require.NoError(t, os.RemoveAll(s.base)) }()
	kept := true
	accepted := func(got ended) bool {
		if got.code == 125 {
			require.Greater(t, len(got.stderr), 40, "a reason")
			kept = false
			return false
		}
		return true
	}
	got := s.run("acquire", "--json", "--detach", "--ttl", "1h", "-n", a)
	if accepted(got) {
		require.Zero(t, got.code, got.stderr)
		if other := s.run("run", "-n", b, "--", "true"); accepted(other) {
			require.Zero(t, other.code, other.stderr)
		}
		require.Equal(t, 121, s.run("run", "-n", a, "--", "true").code)
		require.Equal(t, 121, s.run("acquire", "-n", a, "--pid", "1").code, "its keeper has the same name")
		var shown, again struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(got.stdout), &shown))
		require.NoError(t, json.Unmarshal([]byte(s.must("history", "--json", "--limit", "1", "--", a)), &again))
		require.Equal(t, shown, again)
		if other := s.run("history", "--json", "--", b); accepted(other) {
			require.NotContains(t, other.stdout, `"command":"acquire --detach"`)
		}
		s.must("break", "--force", "--now", "--", a)
	}
	if got := s.run("acquire", "--detach", "--ttl", "1h", "-n", "x", "-g", a); accepted(got) {
		if other := s.run("run", "-n", "x", "-g", b, "--", "true"); accepted(other) {
			require.Zero(t, other.code, other.stderr)
		}
		require.Equal(t, 121, s.run("acquire", "-n", "x", "-g", a, "--pid", "1").code)
	}
	if got := s.run("run", "--once", "-n", a, "--", "true"); accepted(got) {
		require.Zero(t, got.code, got.stderr)
		if other := s.run("run", "--once", "-n", b, "--", "echo", "b ran"); accepted(other) {
			require.Equal(t, "b ran", strings.TrimSpace(other.stdout), "%q has the result of %q", b, a)
		}
		require.Empty(t, s.must("run", "--once", "-n", a, "--", "echo", "twice"))
	}
	return kept
}
