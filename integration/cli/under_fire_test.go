package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// batchUnderFire has three runners, with slots as their option -j, process a list while strike
// repeatedly breaks the servers, with a pause of pace between two strikes: each job ends once, and none
// starts again after that. With -long there are 2,000 jobs.
func (s *station) batchUnderFire(slots string, strike func(n int, pace time.Duration)) {
	s.Helper()
	jobs, lasts, pace := 60, 0.3, 2*time.Second
	if *longBatch {
		jobs, lasts, pace = 2000, 1, 30*time.Second
	}
	ran := filepath.Join(s.TempDir(), "ran")
	var list strings.Builder
	for i := range jobs {
		fmt.Fprintf(&list, "echo begin %d >>%[2]s; sleep %[3]g; echo end %[1]d >>%[2]s\n", i, ran, lasts)
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
			case <-time.After(pace): // a server that is slow to start has this long before the next strike, too
			}
			strike(strikes, pace)
			strikes++
		}
	}()
	require.Eventually(s, func() bool { return strings.Count(read(s, ran), "end") >= jobs }, 30*time.Minute, time.Second, "all jobs have ended")
	for _, r := range runners {
		got := r.end()
		require.Zero(s, got.code, "%s%s", got.stdout, got.stderr)
	}
	close(over)
	strikes := <-stopped
	begun := s.checkRuns(ran, jobs)
	s.Logf("%d jobs in %s, with %d attempts, and a server killed %d times", jobs, time.Since(start).Round(time.Second), begun, strikes)
}

// checkRuns reads the jobs' log and requires that each job ended once, and did not start again after
// that.
func (s *station) checkRuns(ran string, jobs int) (begun int) {
	s.Helper()
	ends := map[string]int{}
	for line := range strings.Lines(read(s, ran)) {
		what, job, _ := strings.Cut(strings.TrimSpace(line), " ")
		require.Zero(s, ends[job], "job %s has ended, and there is a second %s", job, what)
		if what == "begin" {
			begun++
		} else {
			ends[job]++
		}
	}
	require.Len(s, ends, jobs, "no job is lost")
	return begun
}

// read returns the content of a file, "" if there is no such file.
func read(s *station, path string) string {
	text, err := os.ReadFile(path)
	if !os.IsNotExist(err) {
		require.NoError(s, err)
	}
	return string(text)
}
