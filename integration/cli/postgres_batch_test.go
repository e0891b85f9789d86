package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/pglab"
)

// TestPostgresBatch has three runners work through a list while the server is killed and started
// again: each job runs once.
func TestPostgresBatch(t *testing.T) {
	t.Parallel()
	jobs, pace := 60, 2*time.Second
	if *longBatch {
		jobs, pace = 2000, 30*time.Second
	}
	server := pglab.Start(t, pglab.Options{})
	s := newStation(t, "MULTILOCK_SOURCE="+server.URL("schema=locks"))
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
			server.Kill()
			time.Sleep(pace / 10)
			server.Begin()
			kills++
		}
	}()
	for _, r := range runners {
		got := r.end()
		require.Zero(t, got.code, "%s%s", got.stdout, got.stderr)
	}
	close(over)
	kills := <-stopped
	text, err := os.ReadFile(ran)
	require.NoError(t, err)
	lines := strings.Fields(string(text))
	require.Len(t, lines, jobs)
	slices.Sort(lines)
	require.Len(t, slices.Compact(lines), jobs, "each of them ran once")
	t.Logf("%d jobs in %s, with the server killed %d times", jobs, time.Since(start).Round(time.Second), kills)
	require.Equal(t, "0", server.Value("SELECT count(*) FROM locks.lock"), "no lock is left")
}
