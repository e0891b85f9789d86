package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// batchUnderFire has three runners, with so many slots each, work through a list while something happens to the servers again
// and again: each job runs once. With -long there are 2,000 jobs.
func (s *station) batchUnderFire(slots string, strike func(n int, pace time.Duration)) {
	s.Helper()
	jobs, pace := 60, 2*time.Second
	if *longBatch {
		jobs, pace = 2000, 30*time.Second
	}
	ran := filepath.Join(s.TempDir(), "ran")
	var list strings.Builder
	for i := range jobs {
		fmt.Fprintf(&list, "sleep 0.3; echo job%d >>%s\n", i, ran)
	}
	start := time.Now()
	var runners []*running
	for range 3 {
		runners = append(runners, s.begin(s.command("-g", "night", "batch", slots, s.write(list.String()))))
	}
	over, stopped := make(chan struct{}), make(chan int)
	go func() {
		strikes := 0
		defer func() { stopped <- strikes }()
		for {
			select {
			case <-over:
				return
			case <-time.After(pace):
			}
			strike(strikes, pace)
			strikes++
		}
	}()
	for _, r := range runners {
		got := r.end()
		require.Zero(s, got.code, "%s%s", got.stdout, got.stderr)
	}
	close(over)
	strikes := <-stopped
	text, err := os.ReadFile(ran)
	require.NoError(s, err)
	lines := strings.Fields(string(text))
	require.Len(s, lines, jobs)
	slices.Sort(lines)
	require.Len(s, slices.Compact(lines), jobs, "each of them ran once")
	s.Logf("%d jobs in %s, with a server killed %d times", jobs, time.Since(start).Round(time.Second), strikes)
}
