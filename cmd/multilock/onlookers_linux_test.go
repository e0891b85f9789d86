package main_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// onlooker returns a user with read access to a base directory, and no write access.
func onlooker(t *testing.T) member {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to play another user")
	}
	s := &station{t: t, base: openToAll(t)}
	require.NoError(t, os.Chmod(s.base, 0o755))
	return member{s, 65533, "022"}
}

func TestOnlookersWaitEndsWithTheJobs(t *testing.T) {
	t.Parallel()
	for _, options := range [][]string{nil, {"--members", "job", "--wait-for-takeover", "100ms"}} {
		t.Run(strings.Join(options, " "), func(t *testing.T) {
			t.Parallel()
			m := onlooker(t)
			// This user cannot inspect processes of other users, so only missing heartbeats may be evidence.
			require.Equal(t, -1, m.station.run("run", "-n", "job", "--ttl", "5s", "--", "sh", "-c", "kill -9 $PPID").code)
			got := m.run(append([]string{"wait", "--timeout", "3m"}, options...)...)
			require.Equal(t, 1, got.code, "the job died: %s", got.stderr)
			require.Contains(t, got.stderr, "job \"job\" died, run by ")
			require.Contains(t, got.stderr, "warning: the lock of a dead holder is still there: ")
			require.Equal(t, 1, strings.Count(got.stderr, "permission denied"), got.stderr)
		})
	}
}

func TestOnlookersStatusWatches(t *testing.T) {
	t.Parallel()
	m := onlooker(t)
	holder := begin(t, m.host("other").on(append([]string{"run", "-n", "job", "--ttl", "5s", "--"}, clitest.WaitingJob()...)...))
	holder.Expect("ready")
	holder.Kill()
	holder.wait()
	require.Contains(t, m.run("status", "job").stdout, "how long it has sent no heartbeat is not known")
	watching := m.start("status", "--watch", "--every", "50ms", "--json", "job")
	m.eventually("it is seen dead", func() bool { return strings.Contains(watching.Out.String(), `"dead"`) })
	watching.Kill()
	watching.wait()
}

// Every reader of a lock knows its token. A process with the token in its environment does not keep a dead
// lock held, and is not ended as one of the job's processes.
func TestTokenInOtherHands(t *testing.T) {
	t.Parallel()
	m := onlooker(t)
	holder := m.station.start(append([]string{"run", "-n", "job", "--max-runtime", "3s", "--grace", "100ms", "--"}, clitest.WaitingJob()...)...)
	holder.Expect("ready")
	pretender := m.pretend("job")
	got := holder.wait()
	require.Equal(t, 124, got.code, got.stderr)
	require.NotContains(t, got.stderr, "still alive")
	require.NoError(t, pretender.Process.Signal(syscall.Signal(0)), "it was ended")

	holder = m.station.start("run", "-n", "job", "--ttl", "5s", "--", "sh", "-c", "echo ready; read line; kill -9 $PPID")
	holder.Expect("ready")
	m.pretend("job")
	holder.end()
	m.eventually("it is seen dead", func() bool { return m.lock("job").State == "dead" }) // others come and go on a busy host
	m.station.must("run", "-n", "job", "--wait", "1m", "--", "true")
}

// pretend starts a process of the member with all readable data of a lock in its environment.
func (m member) pretend(name string) *exec.Cmd {
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{"MULTILOCK_TOKEN=" + m.lock(name).Token, "MULTILOCK_JOB_KEY=" + m.lock(name).Token}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: m.uid, Gid: m.uid}}
	require.NoError(m.t, cmd.Start())
	m.t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd
}
