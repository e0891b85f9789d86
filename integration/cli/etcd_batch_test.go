package cli_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/etcdlab"
)

var longBatch = flag.Bool("long", false, "a list of 2,000 jobs on etcd, instead of 60")

// TestEtcdBatch has three runners work through a list while one member of three after the other
// is killed, the leader among them: each job runs once.
func TestEtcdBatch(t *testing.T) {
	t.Parallel()
	jobs, pace := 60, 2*time.Second
	if *longBatch {
		jobs, pace = 2000, 30*time.Second
	}
	c := etcdlab.Start(t, 3)
	s := newStation(t, "MULTILOCK_SOURCE="+c.URL("locks"))
	ran := filepath.Join(t.TempDir(), "ran")
	var list strings.Builder
	for i := range jobs {
		fmt.Fprintf(&list, "sleep 0.3; echo job%d >>%s\n", i, ran)
	}
	start := time.Now()
	var runners []*running
	for range 3 {
		runners = append(runners, s.begin(s.command("-g", "night", "batch", "-j2", s.write(list.String()))))
	}
	over, stopped := make(chan struct{}), make(chan int)
	go func() {
		kills := 0
		defer func() { stopped <- kills }()
		for {
			select {
			case <-over:
				return
			case <-time.After(pace):
			}
			victim := c.Leader()
			if kills%2 == 1 {
				victim = c.Members[kills%3]
			}
			c.Kill(victim)
			time.Sleep(pace / 2)
			c.Restart(victim)
			kills++
		}
	}()
	for _, r := range runners {
		got := r.end()
		require.Zero(t, got.code, "%s%s", got.stdout, got.stderr)
	}
	close(over)
	text, err := os.ReadFile(ran)
	require.NoError(t, err)
	lines := strings.Fields(string(text))
	require.Len(t, lines, jobs)
	slices.Sort(lines)
	require.Len(t, slices.Compact(lines), jobs, "each of them ran once")
	t.Logf("%d jobs in %s, with %d members killed", jobs, time.Since(start).Round(time.Second), <-stopped)
	require.Zero(t, c.Count(t, "locks/lock/"), "no lock is left")
}
