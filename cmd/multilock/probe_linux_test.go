package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// slurm returns a directory with Slurm's commands, which know one job.
func slurm(t *testing.T, state string) string {
	t.Helper()
	dir := t.TempDir()
	for name, script := range map[string]string{
		"squeue": "echo 4711 " + state + " alpha", "scontrol": "echo alpha", "sinfo": "echo alpha idle",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755)) //nolint:gosec // it is to be run
	}
	return "PATH=" + dir + ":" + filepath.Dir(clitest.Binary()) + ":" + os.Getenv("PATH")
}

// crashed leaves the lock of a host that crashed in a Slurm job.
func (s *station) crashed(name string) {
	s.t.Helper()
	cmd := s.host("alpha").on(append([]string{"run", "-n", name, "--ttl", "20s", "--"}, clitest.WaitingJob()...)...)
	cmd.Env = append(cmd.Env, "SLURM_JOB_ID=4711", "SLURM_CLUSTER_NAME=c", "SLURMD_NODENAME=alpha")
	r := begin(s.t, cmd)
	r.Expect("ready")
	s.awaitTold(name)
	require.NoError(s.t, r.Cmd.Process.Kill())
	r.wait()
}

// If Slurm confirms the end of the job, the lock is taken over before its TTL, and the history has the
// reason.
// Rule: probe
func TestProbe(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.crashed("x")
	cmd := s.host("beta").on("run", "-n", "x", "--probe", "slurm", "--wait", "forever", "-q", "--", "hostname")
	cmd.Env = append(cmd.Env, slurm(t, "CANCELLED"))
	require.Equal(t, ended{0, "beta\n", ""}, s.finish(cmd))
	events := s.history("x")
	require.Equal(t, []string{"acquired", "broken", "acquired", "released"}, happened(events))
	require.Equal(t, "its Slurm job 4711 is over (CANCELLED), and it has missed a heartbeat", events[1].Why)
}

// A job that has not ended keeps its lock. So does a job for which the probe is inconclusive, which is
// reported. Then the TTL decides.
// Rule: probe
func TestProbeWithoutProof(t *testing.T) {
	t.Parallel()
	for probe, said := range map[string]string{"slurm": "", "echo perhaps": `--probe is inconclusive about the holder of "x": its command printed "perhaps"`} {
		t.Run(probe, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			s.crashed("x")
			cmd := s.host("beta").on("run", "-n", "x", "--probe", probe, "--wait", "10s", "--", "hostname")
			cmd.Env = append(cmd.Env, slurm(t, "RUNNING"))
			got := s.finish(cmd)
			require.Equal(t, 124, got.code, got.stderr)
			require.Equal(t, []string{"acquired"}, happened(s.history("x")))
			require.Contains(t, got.stderr, said)
		})
	}
}

// No probe runs for a live holder.
// Rule: probe
func TestProbeOfTheLiving(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	asked := filepath.Join(t.TempDir(), "asked")
	holder := begin(t, s.host("alpha").on(append([]string{"run", "-n", "x", "--"}, clitest.WaitingJob()...)...))
	holder.Expect("ready")
	got := s.finish(s.host("beta").on("run", "-n", "x", "--probe", "touch "+asked+"; echo gone", "--", "hostname"))
	require.Equal(t, 121, got.code, got.stderr)
	require.NoFileExists(t, asked)
	require.Equal(t, ended{0, "ready\n", ""}, holder.end())
}

func TestProbeNeedsASourceThatAsks(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	got := s.run("--source", "cook+file://"+s.base+"?period=5m", "run", "--probe", "slurm", "--", "true")
	require.Equal(t, 125, got.code)
	require.Contains(t, got.stderr, "--probe: only locks in a directory ask about a holder without heartbeats")
}

// status shows the probe's answer and changes nothing; a barrier removes the dead lock; acquire takes it
// over, and reports why a probe is inconclusive.
func TestProbeOfOtherCommands(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.crashed("x")
	s.crashed("y")
	beta := s.host("beta")
	on := func(args ...string) ended {
		cmd := beta.on(args...)
		cmd.Env = append(cmd.Env, slurm(t, "CANCELLED"))
		return s.finish(cmd)
	}
	const why = "its Slurm job 4711 is over (CANCELLED), and it has missed a heartbeat"
	s.eventually("the probe is asked", func() bool {
		got := on("status", "x", "--json", "--probe", "slurm")
		return clitest.Locks(t, got.stdout)[0].Why == why
	})
	require.Zero(t, on("status", "-q", "x", "--probe", "slurm").code)
	got := on("acquire", "-n", "x", "--probe", "echo perhaps", "--pid", "1")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, `--probe is inconclusive about the holder of "x": its command printed "perhaps"`)
	require.Equal(t, []string{"acquired"}, happened(s.history("x")), "nothing has changed")

	got = on("acquire", "-n", "x", "--probe", "slurm", "--pid", "1")
	require.Zero(t, got.code, got.stderr)
	require.Equal(t, why, s.history("x")[1].Why)
	s.must("release", "-n", "x", "--token", strings.TrimSpace(got.stdout))
	got = on("wait", "--probe", "slurm")
	require.Equal(t, 1, got.code, got.stderr)
	require.Contains(t, got.stderr, why)
	require.Empty(t, s.locks())
}
