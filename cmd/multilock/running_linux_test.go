package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/show"
)

// runningJobs returns the running jobs that status shows, as "name attempt", in different slots.
func (s *station) runningJobs() (jobs []string) {
	var slots []int
	var v struct{ Locks []show.Lock }
	require.NoError(s.t, json.Unmarshal([]byte(s.must("status", "--json")), &v))
	for _, l := range v.Locks {
		for _, r := range l.Running {
			require.NotNil(s.t, r.Age)
			require.Less(s.t, *r.Age, *l.Age, "it began under the lock")
			require.NotEmpty(s.t, r.Command)
			jobs, slots = append(jobs, fmt.Sprint(r.Name, " ", r.Attempt)), append(slots, r.Slot)
		}
	}
	slices.Sort(jobs)
	slices.Sort(slots)
	require.Subset(s.t, []int{1, 2}, slots)
	require.Len(s.t, slices.Compact(slots), len(jobs))
	return jobs
}

// Every host sees which jobs of a chunk run, in which slot and in which attempt, but not those that have
// ended.
func TestRunningJobsOfAChunk(t *testing.T) {
	t.Parallel()
	s, dir := newStation(t), t.TempDir()
	until := func(file string) string { return "while [ ! -e " + dir + "/" + file + " ]; do sleep .1; done; " }
	touch := func(file string) { require.NoError(t, os.WriteFile(filepath.Join(dir, file), nil, 0o600)) }
	jobs := []string{
		"long\t" + until("end"), "again\t" + until("fail") + "[ $MULTILOCK_ATTEMPT = 2 ] && " + until("end") + "[ $MULTILOCK_ATTEMPT = 2 ]",
	}
	for range 30 { // so that both are in one chunk
		jobs = append(jobs, fmt.Sprintf("short%d\ttrue", len(jobs)))
	}
	alpha := begin(t, s.host("alpha").on("batch", "-j2", "--retries", "1", s.list(jobs...)))
	eventually := func(want ...string) {
		t.Helper()
		s.eventually(fmt.Sprint("these run: ", want), func() bool { return slices.Equal(want, s.runningJobs()) })
	}
	eventually("again 1", "long 1")
	touch("fail")
	eventually("again 2", "long 1")
	user, watch := onTerminalOf(t, 100, s.command("status", "--watch", "--every", "1h"))
	user.Type("/again\n")
	user.Screen.Take(t, "find (again)") // for its whole text, after each letter of it
	user.Type("s")
	require.Regexp(t, `again +held +alpha +[12] +2 `, user.Screen.Take(t, "find (again)"))
	user.Type("q")
	require.Zero(t, watch.wait().code)
	touch("end")
	require.Zero(t, alpha.wait().code)
	require.Empty(t, s.runningJobs())
}

// "run --slots" around the command provides a slot that is unique across all hosts.
func TestSlotsOverTheCluster(t *testing.T) {
	t.Parallel()
	s, dir := newStation(t), t.TempDir()
	const slots = 3
	var jobs []string
	for n := range 12 {
		jobs = append(jobs, fmt.Sprintf(`job%d	multilock run -q --wait forever --poll 20ms -n licence --slots %d -- sh -c 'mkdir %s/$MULTILOCK_SLOT && sleep .1 && rmdir %s/$MULTILOCK_SLOT && echo licence $MULTILOCK_SLOT'`, n, slots, dir, dir))
	}
	args := []string{"batch", "-q", "-j4", s.list(jobs...)}
	alpha := begin(t, s.host("alpha").on(args...))
	beta := s.finish(s.host("beta").on(args...))
	require.Zero(t, beta.code, beta.stderr)
	require.Zero(t, alpha.wait().code)
	for n := range 12 {
		require.Regexp(t, `^licence [1-3]\n$`, s.must("logs", "-q", fmt.Sprint("job", n)))
	}
}
