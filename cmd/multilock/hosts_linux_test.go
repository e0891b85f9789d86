package main_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
)

// host looks like a separate machine to multilock: host name, boot ID, machine ID, process IDs.
type host struct {
	*station
	name string
	dir  string
}

func (s *station) host(name string) *host {
	s.t.Helper()
	if os.Getuid() != 0 {
		s.t.Skip("needs root to make namespaces")
	}
	if _, err := exec.LookPath("unshare"); err != nil {
		s.t.Skip("needs unshare(1)")
	}
	h := &host{s, name, s.t.TempDir()}
	boot, machine := uuid.NewString(), strings.ReplaceAll(uuid.NewString(), "-", "")
	require.NoError(s.t, os.WriteFile(filepath.Join(h.dir, "boot_id"), []byte(boot+"\n"), 0o600))
	require.NoError(s.t, os.WriteFile(filepath.Join(h.dir, "machine-id"), []byte(machine+"\n"), 0o600))
	return h
}

// enter creates the namespaces that make the difference.
const enter = `
hostname "$0" && cd "$1" && shift &&
mount --bind boot_id /proc/sys/kernel/random/boot_id &&
if test -e /etc/machine-id; then mount --bind machine-id /etc/machine-id; fi &&
"$@"`

// on prepares the binary on the host. Killing the process crashes the host.
func (h *host) on(args ...string) *exec.Cmd {
	h.t.Helper()
	cmd := h.command(args...)
	unshare, err := exec.LookPath("unshare")
	require.NoError(h.t, err)
	entering := []string{"unshare", "--uts", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", enter, h.name, h.dir}
	cmd.Path, cmd.Args = unshare, slices.Concat(entering, cmd.Args)
	return cmd
}

// If any number of hosts run the same command line at the same time, exactly one runs the job.
func TestExactlyOneOfManyHostsRuns(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	ends := make(chan ended)
	var contenders []*running
	names := []string{"alpha", "beta", "gamma", "delta"}
	for _, name := range names {
		r := begin(t, s.host(name).on(append([]string{"run", "-n", "nightly", "--"}, clitest.WaitingJob()...)...))
		contenders = append(contenders, r)
	}
	for _, r := range contenders {
		go func() { ends <- r.wait() }()
	}
	var refusals []string
	for range names[1:] {
		got := <-ends
		require.Equal(t, 121, got.code, got.stderr)
		require.Empty(t, got.stdout)
		refusals = append(refusals, got.stderr)
	}
	for _, r := range contenders {
		_ = r.In.Close()
	}
	require.Equal(t, ended{0, "ready\n", ""}, <-ends)
	events := s.history("nightly")
	require.Equal(t, []string{"acquired", "released"}, happened(events))
	for _, refusal := range refusals {
		require.Regexp(t, `held by (alpha|beta|gamma|delta) pid \d+ .*, and runs on another host`, refusal)
	}
}

// A crashed host's lock is taken over after its TTL, and the history has the evidence.
func TestCrashedHost(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	alpha, beta := s.host("alpha"), s.host("beta")
	job := begin(t, alpha.on(append([]string{"run", "-n", "nightly", "--ttl", "2s", "--"}, clitest.WaitingJob()...)...))
	job.Expect("ready")
	s.awaitTold("nightly")
	require.NoError(t, job.Cmd.Process.Kill())
	job.wait()
	got := s.finish(beta.on("run", "-n", "nightly", "--wait", "forever", "-q", "--", "hostname"))
	require.Equal(t, ended{0, "beta\n", ""}, got)
	events := s.history("nightly")
	require.Equal(t, []string{"acquired", "broken", "acquired", "released"}, happened(events))
	require.Contains(t, events[1].Why, "no heartbeat for")
	require.Contains(t, events[1].Why, "with a limit of 2s")
}

// The attempts of all hosts are counted together, and a crash loses no recorded attempt.
func TestRetriesOverHosts(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	run := func(end string) []string {
		return slices.Concat([]string{"run", "-n", "x", "--once", "--retries", "2", "--ttl", "2s", "--wait", "forever"}, s.counting(end))
	}
	alpha := begin(t, s.host("alpha").on(run(`test "$MULTILOCK_ATTEMPT" = 1 && exit 5; echo ready; exec cat`)...))
	alpha.Expect("ready") // its second attempt
	require.NoError(t, alpha.Cmd.Process.Kill())
	alpha.wait()
	require.Equal(t, "retry", s.result("x").State)
	require.Regexp(t, `(?m)^0 done, 1 failed and to be tried again: x \(exit 5 on alpha, `, s.must("status"))

	beta := s.finish(s.host("beta").on(run("exit 6")...))
	require.Equal(t, 6, beta.code, beta.stderr)
	require.Equal(t, []string{"1", "2", "2", "3"}, s.attempts())
	gamma := s.finish(s.host("gamma").on(run("true")...))
	require.Equal(t, 6, gamma.code)
	require.Contains(t, gamma.stderr, "exit 6 on beta")
	require.Len(t, s.attempts(), 4)
}

// locksIn returns the JSON of the held locks.
func locksIn(s *station) string {
	var report struct{ Locks json.RawMessage }
	require.NoError(s.t, json.Unmarshal([]byte(s.must("status", "--json")), &report))
	return string(report.Locks)
}

// Ctrl-C ends a doctor that waits for other hosts, and releases its presence lock.
func TestDoctorIsInterrupted(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	doctor := s.start("doctor", "--join", "--timeout", "1h")
	doctor.Err.Expect(t, "multilock: waiting up to 1h00m for other hosts: 1 of 2 joined; run the same command on each")
	require.Contains(t, locksIn(s), `"doctor-join#slot-`)
	doctor.Signal(syscall.SIGINT)
	got := doctor.wait()
	require.Empty(t, got.stdout)
	require.Contains(t, got.stderr, "stopped by signal: interrupt")
	require.Equal(t, "[]", locksIn(s))
}
