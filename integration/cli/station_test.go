package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// watchdog bounds what would otherwise hang. Nothing that passes comes near it.
	watchdog = time.Minute
	// poll is the pause between two looks at what a test waits for.
	poll = 20 * time.Millisecond
)

// password is that of all servers, and escaped what it is in a URL. No part of it is
// to be seen anywhere.
const (
	password = "s3cret/and@long"
	escaped  = "s3cret%2Fand%40long"
)

// station is an environment in which commands are run: a place, a password.
type station struct {
	*testing.T
	vars    []string
	secrets []string // what no command may print
}

func newStation(t *testing.T, vars ...string) *station {
	t.Helper()
	vars = append(vars, "XDG_RUNTIME_DIR="+t.TempDir())
	return &station{t, vars, []string{"s3cret"}}
}

// with is the station with more variables, of which the last of a name counts.
func (s *station) with(vars ...string) *station {
	return &station{s.T, slices.Concat(s.vars, vars), s.secrets}
}

// ended is how a command ended.
type ended struct {
	code           int
	stdout, stderr string
}

// command prepares the binary, in an environment without any other variable of ours.
func (s *station) command(args ...string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(os.Getenv(binaryVariable), args...)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "MULTILOCK_") && !strings.HasPrefix(entry, "PATH=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(append(cmd.Env, "PATH="+filepath.Dir(cmd.Path)+":"+os.Getenv("PATH")), s.vars...)
	cmd.Dir = s.TempDir()
	cmd.WaitDelay = watchdog
	return cmd
}

// run runs the binary to its end.
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

// running is a command in the background. It lives no longer than the test.
type running struct {
	*station
	cmd      *exec.Cmd
	stdin    io.Closer
	out, err *output
	once     sync.Once
}

func (s *station) begin(cmd *exec.Cmd) *running {
	s.Helper()
	r := &running{station: s, cmd: cmd, out: newOutput(), err: newOutput()}
	stdin, err := cmd.StdinPipe()
	require.NoError(s, err)
	r.stdin, cmd.Stdout, cmd.Stderr = stdin, r.out, r.err
	require.NoError(s, cmd.Start())
	s.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = stdin.Close()
		r.once.Do(func() { _ = cmd.Wait() })
	})
	return r
}

// waitingJob is a command that says that it runs, and ends with its input.
var waitingJob = []string{"--", "sh", "-c", "echo ready; exec cat"}

// hold starts a run whose job runs when hold returns.
func (s *station) hold(options ...string) *running {
	s.Helper()
	return s.holding(s.command(slices.Concat([]string{"run"}, options, waitingJob)...))
}

func (s *station) holding(cmd *exec.Cmd) *running {
	s.Helper()
	r := s.begin(cmd)
	r.out.expect(r.T, "ready")
	return r
}

// end closes the standard input and waits for the end.
func (r *running) end() ended {
	r.Helper()
	_ = r.stdin.Close()
	return r.wait()
}

func (r *running) wait() ended {
	r.Helper()
	r.once.Do(func() {
		timer := time.AfterFunc(watchdog, func() { _ = r.cmd.Process.Kill() })
		err := r.cmd.Wait()
		require.True(r, timer.Stop(), "%v did not end: %s", r.cmd.Args, r.err)
		require.NotErrorIs(r, err, exec.ErrWaitDelay, "somebody has the output of %v still open", r.cmd.Args)
	})
	got := ended{r.cmd.ProcessState.ExitCode(), r.out.String(), r.err.String()}
	for _, secret := range r.secrets {
		require.NotContains(r, got.stdout+got.stderr, secret, "%v", r.cmd.Args)
	}
	return got
}

// kill ends the command as a crash does.
func (r *running) kill() {
	r.Helper()
	require.NoError(r, r.cmd.Process.Kill())
	r.once.Do(func() { _ = r.cmd.Wait() })
}

// lockView is what the tests read of a lock in the JSON of several commands.
type lockView struct {
	Name, State, Why, Token, Host, Command string
	PID                                    int
	TTL                                    float64 `json:"ttl_seconds"`
}

// locks are those that status shows.
func (s *station) locks(args ...string) []lockView {
	s.Helper()
	var report struct{ Locks []lockView }
	require.NoError(s, json.Unmarshal([]byte(s.must(append([]string{"status", "--json"}, args...)...)), &report))
	return report.Locks
}

func (s *station) lock(name string) lockView {
	s.Helper()
	found := s.locks(name)
	require.Len(s, found, 1)
	return found[0]
}

// eventually waits for what comes in its own time.
func (s *station) eventually(what string, condition func() bool) {
	s.Helper()
	require.Eventually(s, condition, watchdog, poll, what)
}

// write writes a file of the test's own, and returns its path.
func (s *station) write(content string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "file")
	require.NoError(s, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// output collects what a command writes, for looking at meanwhile.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{}
}

func newOutput() *output { return &output{changed: make(chan struct{}, 1)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case o.changed <- struct{}{}:
	default:
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) expect(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(watchdog)
	for !strings.Contains(o.String(), text) {
		select {
		case <-o.changed:
		case <-deadline:
			t.Fatalf("%q does not appear, but %q", text, o.String())
		}
	}
}
