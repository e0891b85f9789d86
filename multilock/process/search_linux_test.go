package process

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// endedProcess is a process that has ended: of which nobody knows any more, or as a zombie.
func endedProcess(t *testing.T, reaped bool) int {
	t.Helper()
	cmd := exec.Command("true")
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() })
	if reaped {
		_ = cmd.Wait()
		return cmd.Process.Pid
	}
	for dead := false; !dead; {
		var buf statBuffer
		seen, err := readStat(statPath(cmd.Process.Pid), &buf)
		require.NoError(t, err)
		dead = seen.dead()
	}
	_ = output.Close()
	return cmd.Process.Pid
}

// Who has ended before his turn may have started another one, unless he was seen before
// and is not of the job.
func TestSearchMissesWhoHasEnded(t *testing.T) {
	for _, reaped := range []bool{false, true} {
		pid := endedProcess(t, reaped)
		s := jobSearch{mark: "MARK=x", strangers: map[int]uint64{}}
		var first, second searchPass
		s.look(pid, &first)
		require.True(t, first.missed)
		require.Nil(t, first.found)
		require.Nil(t, first.doubt)
		if reaped {
			s.strangers[pid] = 1
		}
		s.look(pid, &second)
		require.False(t, second.missed, "it is known by now")
		missed := searchPass{missed: true}
		s.look(pid, &missed)
		require.True(t, missed.missed, "another one still is")
	}
}

func TestSearchLooksAtTheLiving(t *testing.T) {
	self := os.Getpid()
	start := ownStart()
	s := jobSearch{mark: "MARK=x", strangers: map[int]uint64{}}
	var p searchPass
	s.look(self, &p)
	require.Equal(t, searchPass{}, p, "it has no mark")
	require.Equal(t, start, s.strangers[self])

	s = jobSearch{mark: os.Environ()[0], since: start + 1, strangers: map[int]uint64{}}
	s.look(self, &p)
	require.Equal(t, searchPass{}, p, "it is older than the holder")
	require.Empty(t, s.strangers)

	s.since = start
	s.look(self, &p)
	require.NotNil(t, p.found)
	require.Equal(t, Alive, p.found.Life)
}
