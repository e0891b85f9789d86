package guides_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTutorial types the tutorial on two hosts, block by block, and compares the output.
func TestTutorial(t *testing.T) {
	hosts(t)
	newPlace(t)
	content, err := os.ReadFile("../../docs/tutorial.md")
	require.NoError(t, err)
	shells := map[string]*shell{"host1": newShell(t, "ssh", "host1"), "host2": newShell(t, "ssh", "host2")}
	for _, b := range blocks("tutorial.md", string(content)) {
		for _, s := range stepsOf(t, b) {
			require.Contains(t, shells, s.host, "%s:%d: %s", b.doc, b.line, s.typed)
			s.check(t, shells[s.host].typeIn(s.typed))
		}
	}
}

// transcript types a block of commands with their output on this host, and compares the output.
func transcript(t *testing.T, b block) {
	newPlace(t)
	here := newShell(t, "sh", "-c")
	for _, s := range stepsOf(t, b) {
		s.check(t, here.typeIn(s.typed))
	}
}

// step is a command in a transcript with its output.
type step struct {
	host, typed, prints string
}

// prompt matches a line with a command: the host's name and a dollar sign.
var prompt = regexp.MustCompile(`^(\w*)\$ (.*)$`) //nolint:gochecknoglobals // a constant

func stepsOf(t *testing.T, b block) (steps []step) {
	t.Helper()
	for line := range strings.Lines(b.text) {
		if m := prompt.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			steps = append(steps, step{host: m[1], typed: m[2]})
			continue
		}
		require.NotEmpty(t, steps, "%s:%d: a transcript begins with a command", b.doc, b.line)
		steps[len(steps)-1].prints += line
	}
	return steps
}

// check compares the output with the transcript, except for what differs between runs: process IDs,
// times, table columns, and whatever the transcript shows as "...".
func (s step) check(t *testing.T, printed string) {
	t.Helper()
	t.Logf("%s$ %s\n%s", s.host, s.typed, printed)
	pattern := regexp.QuoteMeta(strings.TrimSpace(s.prints))
	for _, each := range []struct{ what, by string }{
		{`\\\.\\\.\\\.`, `.*`},
		{`[0-9]+(\\\.[0-9]+)?(ms|s|m[0-9]*s?|h[0-9]*m?)( |\b)`, `[0-9.]+(ms|s|m[0-9]*s?|h[0-9]*m?) ?`},
		{`pid [0-9]+`, `pid [0-9]+`},
		{`20[0-9]{2}-[0-9]{2}-[0-9]{2}`, `[0-9-]+`},
		{`[0-9]{2}:[0-9]{2}:[0-9]{2}`, `[0-9:]+`},
		{`\b[0-9]{4,}\b`, `[0-9]+`},
		{` {2,}`, ` +`},
	} {
		pattern = regexp.MustCompile(each.what).ReplaceAllString(pattern, each.by)
	}
	require.Regexp(t, `(?s)^`+pattern+`$`, strings.TrimSpace(printed), "%s$ %s", s.host, s.typed)
}

// shell is a session on a host.
type shell struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

func newShell(t *testing.T, starter ...string) *shell {
	t.Helper()
	cmd := exec.Command(starter[0], append(starter[1:], "cd /shared; export MULTILOCK_LOCAL=1; exec bash 2>&1")...) //nolint:gosec // a test's
	cmd.Env = environ()
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // the exit code of the session does not matter
	})
	return &shell{t, in, bufio.NewReader(out)}
}

// started matches a command that leaves a holder in the background.
var started = regexp.MustCompile(`[^&]& sleep [0-9.]+$`) //nolint:gochecknoglobals // a constant

// untilHeld waits until a lock is held. On a busy machine that takes longer than the transcript's
// sleep.
const untilHeld = `; until find /shared ! -path '*/.multilock/*' -name '*.locked' 2>/dev/null | grep -q .; do sleep 0.1; done`

// typeIn types a command, and returns the output up to the next prompt.
func (s *shell) typeIn(command string) string {
	s.t.Helper()
	if started.MatchString(command) {
		command += untilHeld
	}
	_, err := io.WriteString(s.in, command+"\nprintf '\\036'\n")
	require.NoError(s.t, err)
	printed, err := s.out.ReadString(mark[0])
	require.NoError(s.t, err, "%s: %s", command, printed)
	return strings.TrimSuffix(printed, mark)
}
