//go:build linux

package soak_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/broken"
)

var (
	durationFlag = flag.Duration("duration", 0, "for how long faults are injected (default 90s, with -short 20s)")
	seedFlag     = flag.Uint64("seed", 0, "the seed of what happens to whom, 0 for a new one")
	ttlFlag      = flag.Duration("ttl", 4*time.Second, "the locks' time to live")
	workersFlag  = flag.Int("workers", 2, "worker processes on each host")
	brokenFlag   = flag.String("broken", "", "make the file system break a rule: "+broken.List())
)

// TestMain makes this binary a worker where the driver has started it as one.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(shiftVariable); ok {
		os.Exit(workMain(text))
	}
	os.Exit(m.Run())
}

// Whatever fails, nobody holds a lock while another one does, fence numbers grow,
// and when the faults are over every lock can be taken again.
func TestSoak(t *testing.T) {
	s := newSoak(t, settings{
		duration: duration(), seed: *seedFlag, ttl: *ttlFlag, workers: *workersFlag, broken: *brokenFlag,
	})
	s.run()
	require.Empty(t, s.result.violations, "double holders")
	require.Empty(t, s.result.stuck, "locks that nobody could take any more")
	require.Empty(t, s.result.fences, "fence numbers that did not grow")
	require.Empty(t, s.result.failures, "workers that failed")
}

func duration() time.Duration {
	switch {
	case *durationFlag > 0:
		return *durationFlag
	case testing.Short():
		return 20 * time.Second
	}
	return 90 * time.Second
}

// A test that cannot fail proves nothing: with a protocol that breaks one of its
// rules the same run has to find two holders at once.
func TestBrokenVariantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("may take minutes for each variant")
	}
	for _, v := range broken.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			const limit = 5 * time.Minute // most are caught within seconds
			s := newSoak(t, settings{
				duration: limit, seed: *seedFlag, ttl: *ttlFlag, workers: *workersFlag, broken: v.Name, untilCaught: true,
			})
			s.run()
			require.NotEmpty(t, s.result.violations, "%s: nobody noticed", v.What)
		})
	}
}

// settings say what a run is like.
type settings struct {
	duration    time.Duration
	seed        uint64
	ttl         time.Duration
	workers     int    // on each host
	broken      string // the name of a variant, "" for the real protocol
	untilCaught bool   // end at the first double holder
}

func newSoak(t *testing.T, set settings) *soak {
	t.Helper()
	if os.Getenv("MULTILOCK_LAB") == "" {
		t.Skip("needs the NFS lab: scripts/nfslab test integration/soak -v")
	}
	if set.seed == 0 {
		set.seed = rand.Uint64()
	}
	hosts, err := startHosts(t.Context())
	require.NoError(t, err)
	s, err := prepare(set, hosts, os.Stdout)
	require.NoError(t, err)
	fmt.Printf("soak: seed %d, %s of faults, ttl %s\n", set.seed, set.duration, set.ttl)
	return s
}
