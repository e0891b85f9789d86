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

// command is the command line, which the lab's test command builds and passes on.
const command = "/guest/multilock"

func needCommand(t *testing.T) {
	t.Helper()
	needLab(t)
	if _, err := os.Stat(command); err != nil {
		t.Skip("the lab's test command builds the command line and passes it on: integration/nfs/run")
	}
}

// multilockOn runs the command on a host, and returns what it printed.
func (p place) multilockOn(t *testing.T, h host, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("on", append([]string{h.name, command, "-d", p.on(h)}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "multilock %q", args)
	return out
}

// How many requests a look at one of many locks costs, and how many more all of it
// may cost, once.
const (
	perLock  = 8
	overhead = 30
)

// manyLocks takes locks in a place, on the server's own disk: no host knows them.
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

// The same through the command, in a process of its own.
// Rule: calls
func TestCostOfStatus(t *testing.T) {
	needCommand(t)
	eachVersionAtLength(t, func(t *testing.T, h host, _ []host) {
		p, locks := manyLocks(t)
		requireManyLooks(t, h, locks, func() { require.Len(t, p.status(t, h), locks) })
	})
}

// lockSeen is what status tells of a lock.
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

// examined is what the tests read of "doctor --join --json".
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

// doctor prepares a doctor on a host that is to meet others.
func (p place) doctor(h host, args ...string) *exec.Cmd {
	line := []string{h.name, command, "-d", p.on(h), "doctor", "--join", "--json", "--timeout", "2m"}
	cmd := exec.Command("on", slices.Concat(line, args)...)
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return cmd
}

// diagnosis waits for a doctor's end.
func diagnosis(t *testing.T, cmd *exec.Cmd) examined {
	t.Helper()
	_ = cmd.Wait()
	e := examined{code: cmd.ProcessState.ExitCode(), stderr: cmd.Stderr.(*bytes.Buffer).String()}
	require.NoError(t, json.Unmarshal(cmd.Stdout.(*bytes.Buffer).Bytes(), &e), e.stderr)
	t.Logf("%s: exit %d, %+v, %+v", cmd.Args[1], e.code, e.Findings, e.Join)
	return e
}

// about are the findings about other hosts and the meeting, by severity and subject;
// that a host gives its locks back slowly is none.
func (e examined) about() []string {
	var all []string
	for _, f := range e.Findings {
		if f.Subject == "host" || f.Subject == "join" && !strings.Contains(f.Text, "to release the lock") {
			all = append(all, string(f.Severity)+" "+f.Subject)
		}
	}
	return all
}

// meet lets doctors meet, and waits for all of them.
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

// Hosts of all versions of NFS find each other, and that locks keep them apart.
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
