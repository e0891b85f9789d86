package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/clitest"
	"github.com/multilock/go/integration/etcdlab"
	"github.com/multilock/go/integration/pglab"
	"github.com/multilock/go/integration/s3lab"
	"github.com/multilock/go/internal/testkit/actor"
)

const (
	watchdog = clitest.Watchdog
	// poll is the pause between two checks of a condition.
	poll = 20 * time.Millisecond
)

// password is the password of all servers, and escaped is its form in a URL. No part of it may be
// printed anywhere.
const (
	password = "s3cret/and@long"
	escaped  = "s3cret%2Fand%40long"
)

// station is an environment for commands: a place and a password.
type station struct {
	*testing.T
	vars    []string
	secrets []string // must not appear in any output
}

func newStation(t *testing.T, vars ...string) *station {
	t.Helper()
	vars = append(vars, "XDG_RUNTIME_DIR="+t.TempDir())
	return &station{t, vars, []string{"s3cret"}}
}

// with returns the station with more variables. The last one of a name wins.
func (s *station) with(vars ...string) *station {
	return &station{s.T, slices.Concat(s.vars, vars), s.secrets}
}

// ended is the result of a command.
type ended struct {
	code           int
	stdout, stderr string
}

// command prepares the binary, without any other variable of multilock in its environment.
func (s *station) command(args ...string) *exec.Cmd {
	s.Helper()
	return clitest.Command(s, s.vars, args...)
}

// shell prepares a shell that has the binary in its PATH.
func (s *station) shell(script string) *exec.Cmd {
	s.Helper()
	return clitest.Shell(s, s.command(), "sh", script)
}

// run runs the binary until it exits.
func (s *station) run(args ...string) ended {
	s.Helper()
	return s.begin(s.command(args...)).end()
}

// must requires success and returns the standard output.
func (s *station) must(args ...string) string {
	s.Helper()
	got := s.run(args...)
	require.Zero(s, got.code, "%v: %s%s", args, got.stdout, got.stderr)
	return got.stdout
}

// running is a command in the background.
type running struct {
	*station
	*clitest.Process
}

func (s *station) begin(cmd *exec.Cmd) *running {
	s.Helper()
	return &running{s, clitest.Start(s, cmd)}
}

// hold starts a run, and returns when its job runs.
func (s *station) hold(options ...string) *running {
	s.Helper()
	return s.holding(s.command(slices.Concat([]string{"run"}, options, []string{"--"}, clitest.WaitingJob())...))
}

func (s *station) holding(cmd *exec.Cmd) *running {
	s.Helper()
	r := s.begin(cmd)
	r.Expect("ready")
	return r
}

// end closes the standard input and waits for the command to exit.
func (r *running) end() ended {
	r.Helper()
	_ = r.In.Close()
	return r.wait()
}

// wait waits for the command to exit. Its output must not contain a secret.
func (r *running) wait() ended {
	r.Helper()
	r.Wait()
	got := ended{r.Code(), r.Out.String(), r.Err.String()}
	for _, secret := range r.secrets {
		require.NotContains(r, got.stdout+got.stderr, secret, "%v", r.Cmd.Args)
	}
	return got
}

// locks returns the locks that status lists.
func (s *station) locks(args ...string) []clitest.Lock {
	s.Helper()
	got := s.run(append([]string{"status", "--json"}, args...)...)
	require.Contains(s, []int{0, 121}, got.code, got.stderr) // 121: a named lock is held
	return clitest.Locks(s, got.stdout)
}

func (s *station) lock(name string) clitest.Lock {
	s.Helper()
	found := s.locks(name)
	require.Len(s, found, 1)
	return found[0]
}

// eventually waits until a condition is true.
func (s *station) eventually(what string, condition func() bool) {
	s.Helper()
	require.Eventually(s, condition, watchdog, poll, what)
}

// write writes a temporary file and returns its path.
func (s *station) write(content string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "file")
	require.NoError(s, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{etcdlab.Role: etcdlab.PlayMember})
	code := clitest.Main(m, "../../cmd/multilock")
	pglab.RemoveTemplate()
	s3lab.RemoveProgram()
	os.Exit(code)
}
