package nfs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/source"
)

// command is the path of the multilock binary, which the lab's test command builds and copies into
// the machine.
const command = "/guest/multilock"

func needCommand(t *testing.T) {
	t.Helper()
	needLab(t)
	if _, err := os.Stat(command); err != nil {
		t.Skip("needs the multilock binary that the lab's test command builds: integration/nfs/run")
	}
}

// multilockOn runs the command on a host, and returns its standard output.
func (p place) multilockOn(t *testing.T, h host, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("on", append([]string{h.name, command, "-d", p.on(h)}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "multilock %q", args)
	return out
}

// How many requests a status of many locks may cost for each lock, plus a fixed overhead.
const (
	perLock  = 8
	overhead = 30
)

// manyLocks acquires locks on the server's own disk, so that no host has cached them.
func manyLocks(t *testing.T) (place, int) {
	t.Helper()
	locks := 1000
	if testing.Short() {
		locks = 100
	}
	p := newPlace(t)
	src, err := fslock.Open(fslock.Options{Base: p.stored(), Self: hosts()[0].identity(t)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = src.Close() })
	for n := range locks {
		plant(t, src, fmt.Sprintf("job%04d", n), long)
	}
	return p, locks
}

// The status command, as a whole process, stays within the limit for many locks.
// Rule: calls
func TestCostOfStatus(t *testing.T) {
	needCommand(t)
	eachVersionAtLength(t, func(t *testing.T, h host, _ []host) {
		p, locks := manyLocks(t)
		requireManyLooks(t, h, locks, func() { require.Len(t, p.status(t, h), locks) })
	})
}

// lockSeen is a lock in the output of status.
type lockSeen struct {
	Name, State, Host string
	PID               int
}

func (p place) status(t *testing.T, h host) []lockSeen {
	t.Helper()
	var report struct{ Locks []lockSeen }
	require.NoError(t, json.Unmarshal(p.multilockOn(t, h, "status", "--json"), &report))
	for _, l := range report.Locks {
		require.Equal(t, "held", l.State, l.Name)
	}
	return report.Locks
}

func requireManyLooks(t *testing.T, h host, locks int, look func()) {
	t.Helper()
	spent := h.spends(t, look)
	t.Logf("v%s: %d locks, %.2f requests for each, %d in all: %s", h.version, locks, float64(spent.total())/float64(locks), spent.total(), spent)
	require.LessOrEqual(t, spent.total(), perLock*locks+overhead)
}

// examined holds the parts of the output of "doctor --join --json" that tests check.
type examined struct {
	code     int
	stderr   string
	Findings []source.Finding
	Join     struct {
		Turns  int
		Fences []uint64
		Hosts  []struct {
			Host, State string
			NotAcquired int `json:"not_acquired"`
			Turns       int
			SameHost    bool     `json:"same_host"`
			Clock       *float64 `json:"clock_ahead_seconds"`
			Stale       float64  `json:"stale_seconds"`
		}
	}
}

// doctor prepares a "doctor --join" on a host.
func (p place) doctor(h host, args ...string) *exec.Cmd {
	line := []string{h.name, command, "-d", p.on(h), "doctor", "--join", "--json", "--timeout", "2m"}
	cmd := exec.Command("on", slices.Concat(line, args)...)
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return cmd
}

// diagnosis waits for a doctor to exit and parses its report.
func diagnosis(t *testing.T, cmd *exec.Cmd) examined {
	t.Helper()
	_ = cmd.Wait()
	e := examined{code: cmd.ProcessState.ExitCode(), stderr: cmd.Stderr.(*bytes.Buffer).String()}
	require.NoError(t, json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &e), e.stderr)
	t.Logf("%s: exit %d, %+v, %+v", cmd.Args[1], e.code, e.Findings, e.Join)
	return e
}

// about returns severity and subject of the findings on other hosts and on the joint test. It
// leaves out findings that a host was slow to release locks.
func (e examined) about() []string {
	var all []string
	for _, f := range e.Findings {
		if f.Subject == "host" || f.Subject == "join" && !strings.Contains(f.Text, "to release the lock") {
			all = append(all, string(f.Severity)+" "+f.Subject)
		}
	}
	return all
}

// meet runs several doctors at the same time and waits for all of them.
func meet(t *testing.T, doctors ...*exec.Cmd) []examined {
	t.Helper()
	for _, cmd := range doctors {
		require.NoError(t, cmd.Start())
	}
	found := make([]examined, len(doctors))
	var all sync.WaitGroup
	for i, cmd := range doctors {
		all.Go(func() { found[i] = diagnosis(t, cmd) })
	}
	all.Wait()
	return found
}

// Hosts with different versions of NFS find each other, and verify that locks exclude each other.
// Rule: I1, fence
func TestDoctorJoin(t *testing.T) {
	needCommand(t)
	p := newPlace(t)
	var doctors []*exec.Cmd
	for _, h := range hosts() {
		doctors = append(doctors, p.doctor(h, "--expect", "3"))
	}
	numbers := map[uint64]bool{}
	for _, e := range meet(t, doctors...) {
		require.Zero(t, e.code, e.stderr)
		require.Equal(t, []string{"ok host", "ok host", "ok join"}, e.about())
		require.GreaterOrEqual(t, e.Join.Turns, 3)
		require.Len(t, e.Join.Fences, e.Join.Turns)
		for _, number := range e.Join.Fences {
			require.False(t, numbers[number], "number %d twice", number)
			numbers[number] = true
		}
		for _, other := range e.Join.Hosts {
			require.Equal(t, "complete", other.State)
			require.Positive(t, other.NotAcquired)
			require.False(t, other.SameHost)
			require.NotNil(t, other.Clock)
		}
	}
	p.requireEmpty(t)
}
