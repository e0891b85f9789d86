package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/internal/testkit/names"
)

// On a server, two names are two locks with two results, and an unusable name is rejected with a
// reason. MULTILOCK_TEST_NAMES is how long to keep drawing new names.
func TestNoTwoNamesMeetOnAServer(t *testing.T) {
	t.Parallel()
	long, _ := time.ParseDuration(os.Getenv("MULTILOCK_TEST_NAMES"))
	for source, open := range map[string]func(*testing.T) *station{
		"cloudshell": func(t *testing.T) *station { s, _ := cloudshellStation(t); return s },
		"mongodb":    func(t *testing.T) *station { s, _ := mongoStation(t); return s },
		"etcd":       etcdStation, "postgres": postgresStation,
	} {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			s, seed := open(t), uint64(time.Now().UnixNano()) //nolint:gosec // any number
			r := rand.New(rand.NewPCG(seed, 0))               //nolint:gosec // names
			apart, refused := 0, 0
			for began, n := time.Now(), 0; n < 4 || time.Since(began) < long; n++ {
				a, b := names.Pair(r)
				a, b = fmt.Sprintf("%d.%s", n, a), fmt.Sprintf("%d.%s", n, b) // each name is new
				if s.keepsApart(a, b) {
					apart++
				} else {
					refused++
				}
				if t.Failed() {
					t.Fatalf("seed %d: %q and %q", seed, a, b)
				}
			}
			t.Logf("%d pairs were kept apart, %d refused", apart, refused)
		})
	}
}

// keepsApart holds the lock of one name and acquires the other.
func (s *station) keepsApart(a, b string) bool {
	s.Helper()
	for _, name := range []string{a, b} {
		if got := s.run("run", "-n", name, "--", "true"); got.code == 125 {
			require.Greater(s, len(got.stderr), 40, "a reason")
			return false
		}
	}
	holder := s.hold("-n", a)
	require.Zero(s, s.run("run", "-n", b, "--", "true").code)
	require.Equal(s, 121, s.run("run", "-n", a, "--", "true").code)
	require.Zero(s, holder.end().code)
	if got := s.run("run", "--once", "-n", a, "--", "true"); got.code == 125 {
		require.Contains(s, got.stderr, "keeps no results")
		return true
	}
	require.Equal(s, "b ran", strings.TrimSpace(s.must("run", "--once", "-n", b, "--", "echo", "b ran")))
	require.Empty(s, s.must("run", "--once", "-n", a, "--", "echo", "twice"))
	return true
}
