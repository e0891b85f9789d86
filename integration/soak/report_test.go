//go:build linux

package soak_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock/locktest"
)

// report prints the final table.
func (s *soak) report() {
	r, events := s.result, s.journal.all()
	slowest, median := r.longest()
	s.row("seed", s.seed)
	s.row("kernel", kernel())
	s.row("workers", fmt.Sprintf("%d on each of h1 (NFSv4.2), h2 (NFSv4.1), h3 (NFSv3); %d locks", s.workers, len(s.names)))
	s.row("ttl", s.ttl)
	s.row("time", time.Since(s.started).Round(time.Second))
	s.row("acquisitions", s.journal.count(locktest.Acquired))
	s.row("contended waits", contended(events))
	s.row("fence numbers", s.journal.count(locktest.Fenced))
	for _, row := range tallyRows() {
		s.row(row.title, r.tallies[row.key])
	}
	s.row("takeovers", r.broken)
	s.row("losses noticed by holders", s.journal.count(locktest.Lost))
	s.row("calls without an answer", s.journal.count(locktest.Unsure))
	s.row("recovery, median", median.Round(time.Millisecond))
	s.row("recovery, slowest", fmt.Sprintf("%s after %s", slowest.took.Round(time.Millisecond), slowest.after))
	s.row("failures", len(r.failures))
	s.row("double holders", len(r.violations))
	s.row("stuck locks", len(r.stuck))
	s.row("fence violations", len(r.fences))
}

func (s *soak) row(title string, value any) { fmt.Fprintf(s.out, "%-34s %v\n", title, value) }

// tallyRow names a count.
type tallyRow struct{ title, key string }

func tallyRows() []tallyRow {
	return []tallyRow{
		{"worker kills (SIGKILL)", workerKill},
		{"worker stops (SIGSTOP)", workerStop},
		{"host crashes", hostCrash},
		{"host pauses", hostPause},
		{"partitions shorter than the ttl", shortPartition},
		{"partitions longer than the ttl", longPartition},
		{"lossy links", lossyLink},
		{"slow links", slowLink},
		{"hosts without replies", lostReplies},
		{"hosts with a wrong clock", wrongClock},
		{"server restarts", serverRestart},
		{"server power cuts", serverPowerCut},
		{"server connections broken", serverDisconnect},
		{"server silences", serverSilence},
		{"clock shifts forward", clockForward},
		{"clock shifts back", clockBack},
	}
}

// kernel is the release of the kernel, which is the server's and every client's.
func kernel() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return err.Error()
	}
	return unix.ByteSliceToString(u.Release[:])
}

// contended counts the acquisitions that had to wait: another process held the
// lock when they began.
func contended(events []locktest.Event) int {
	events = slices.SortedStableFunc(slices.Values(events), func(a, b locktest.Event) int { return cmp.Compare(a.Time, b.Time) })
	last := map[string]locktest.Event{} // the latest acquisition, by lock
	over := map[string]time.Duration{}  // when a hold was over, by token
	count := 0
	for _, e := range events {
		switch e.Kind {
		case locktest.Acquired:
			before, any := last[e.Name]
			if end := over[before.Token]; any && (end == 0 || e.Start < end) {
				count++
			}
			last[e.Name] = e
		case locktest.Releasing, locktest.Lost:
			over[e.Token] = e.Time
		}
	}
	return count
}
