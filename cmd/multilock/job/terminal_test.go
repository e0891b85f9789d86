//go:build linux

package job_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/cmd/multilock/clitest"
)

func TestJobHasTheTerminal(t *testing.T) {
	s := startBash(t)
	s.run(`$RUN sh -c 'test -t 0 && test -t 1 && test -t 2 && ps -o stat= -p $$; exit 4'`)
	require.Contains(t, s.prompt(), "+", "in the foreground")
	s.requireCode(4)
	s.run(`$RUN sh -c 'read x; echo g""ot=$x'`)
	s.write("hello\n")
	s.expect("got=hello")
	s.prompt()
	s.run(`read y; echo sh""ell=$y`)
	s.write("back\n")
	s.expect("shell=back")
}

func TestInterruptKey(t *testing.T) {
	for name, one := range map[string]struct {
		line string
		code int
	}{
		"the shell has seen a death by SIGINT": {`$RUN sh -c 'echo rea""dy; exec sleep 1000'; echo not rea""ched`, 130},
		"it ends a script":                     {`bash -c '$RUN sh -c "echo rea\"\"dy; exec sleep 1000"; echo not rea""ched'`, 130},
		"the job handles it":                   {`$RUN sh -c 'trap "echo tra\"\"pped; exit 3" INT; echo rea""dy; while :; do sleep 0.01; done'`, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := startBash(t)
			s.run(one.line)
			s.expect("ready")
			s.write(ctrlC)
			said := s.prompt()
			require.NotContains(t, said, "not reached")
			require.Equal(t, one.code == 3, strings.Contains(said, "trapped"))
			s.requireCode(one.code)
		})
	}
}

// tireless prints when it is continued: only then has the shell's fg been executed. Keys typed before that
// may reach the shell, without a runner as well. It is bash because dash uses vfork, and a child that is
// stopped before its exec keeps its parent from stopping, again without a runner as well. The trap itself
// prints nothing: bash loses a signal that arrives during the trap for an earlier one, and the test types
// the next key as soon as anything is printed.
const tireless = `trap c=1 CONT; echo rea""dy; while [ ! -e go ]; do sleep 0.01; [ -z "$c" ] || { c=; echo con""tinued; }; done; exit 6`

func (s *screen) suspend() {
	s.t.Helper()
	s.write(ctrlZ)
	s.expect("Stopped")
	s.prompt()
}

func TestSuspendKeyAndForeground(t *testing.T) {
	s := startBash(t)
	s.run(`$RUN bash -c '` + tireless + `'`)
	s.expect("ready")
	for range 3 {
		s.suspend()
		s.run("fg")
		s.expect("continued")
	}
	s.suspend()
	s.run("touch go; fg")
	s.prompt()
	s.requireCode(6)
}

func TestBackgroundAfterSuspend(t *testing.T) {
	s := startBash(t)
	s.run(`$RUN bash -c '` + tireless + `'`)
	s.expect("ready")
	s.suspend()
	s.run("bg")
	s.expect("continued")
	s.run("jobs -r")
	s.expect("Running")
	s.run(`touch go; wait %1; echo wai""ted=$?.`)
	s.expect("waited=6.")
}

func TestBackgroundJobThatReads(t *testing.T) {
	s := startBash(t)
	s.run(`$RUN cat &`)
	s.expect("Stopped")
	s.expect("RUN cat")
	s.run("fg")
	s.expect("RUN cat")
	s.write("hello\n")
	s.expect("hello") // the echo
	s.expect("hello")
	s.write(ctrlD)
	s.prompt()
	s.requireCode(0)
}

func TestPipelineLeavesTheTerminalToTheOther(t *testing.T) {
	s := startBash(t)
	s.run(`$RUN sh -c 'echo from job; sleep 0.2' | sh -c 'read a; read b </dev/tty; echo "$a, $b and do""ne"'`)
	s.write("key\n")
	s.expect("from job, key and done")
	s.prompt()
	s.requireCode(0)
}

func TestJobInPipelineGetsTheTerminalWhenItAsks(t *testing.T) {
	s := startBash(t)
	s.run(`echo text | $RUN sh -c 'read a; echo rea""dy; read b </dev/tty; echo "$a, $b and do""ne"'`)
	s.expect("ready")
	s.write("key\n")
	s.expect("text, key and done")
	s.prompt()
}

func TestKeysInAPipeline(t *testing.T) {
	s := startBash(t)
	// Without a trap bash continues after an interrupt that its own child did not die of, as when the
	// child had just ended.
	s.run(`echo | $RUN bash -c 'trap "exit 5" INT; ` + tireless + `' | cat`)
	s.expect("ready")
	for range 3 {
		s.suspend()
		s.run("fg")
		s.expect("continued")
	}
	s.write(ctrlC)
	s.prompt()
	s.run(`jobs; echo ch""ecked`)
	require.NotContains(t, s.expect("checked"), "RUN")
}

func TestLineSettingsAreRestoredAfterAKill(t *testing.T) {
	s := startBash(t)
	s.run(`bash -c 'stty -g >before$$; $RUN sh -c "stty raw -echo; kill -KILL \$\$"; echo code=$?.; stty -g | cmp before$$ - && echo sa""me; rm before$$'`)
	s.expect("code=137.")
	s.expect("same")
	s.prompt()
}

func TestShellInsideARunner(t *testing.T) {
	s := startBash(t)
	s.run(`$RUN bash --norc --noediting -i`)
	s.run(`PS1='<<INN''ER>>'`)
	s.expect("<<INNER>>")
	s.run(`sh -c 'echo rea""dy; exec sleep 1000'`)
	s.expect("ready")
	s.write(ctrlC)
	s.expect("<<INNER>>")
	s.run("exit 9")
	s.prompt()
	s.requireCode(9)
}

// TestSuspendWithoutAShell has a session whose leader is the runner: no process would continue it, and
// the kernel stops no process there.
func TestSuspendWithoutAShell(t *testing.T) {
	s, slave := openPTY(t)
	cmd := runner(shell(`echo ready; read x; echo "got=$x"; exit 8`)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = sessionLeader()
	begin(t, cmd)
	require.NoError(t, slave.Close())
	s.expect("ready")
	s.write(ctrlZ)
	s.write("hello\n")
	s.expect("got=hello")
	require.Error(t, cmd.Wait())
	require.Equal(t, 8, cmd.ProcessState.ExitCode())
}

const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlZ = "\x1a"
)

// screen is a terminal with the output that was not read yet.
type screen struct {
	t    *testing.T
	user *clitest.Terminal
}

func openPTY(t *testing.T) (*screen, *os.File) {
	t.Helper()
	user, slave := clitest.OpenTerminal(t)
	return &screen{t, user}, slave
}

func (s *screen) write(text string) { s.user.Type(text) }

// expect waits for a text, and returns and drops everything up to it.
func (s *screen) expect(want string) string {
	s.t.Helper()
	return s.user.Screen.Take(s.t, want)
}

// startBash starts an interactive shell with job control on a terminal of its own. $RUN is a runner there;
// <<PROMPT>> is the prompt.
func startBash(t *testing.T) *screen {
	t.Helper()
	s, slave := openPTY(t)
	cmd := exec.Command("bash", "--norc", "--noprofile", "--noediting", "-i")
	cmd.Env = append(os.Environ(), "HISTFILE=", "TERM=dumb", "RUN="+os.Args[0]+" "+runnerArg)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = sessionLeader()
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.write("PS1='<<PROM''PT>>'; set -b\n")
	s.prompt()
	return s
}

// sessionLeader makes standard input the controlling terminal.
func sessionLeader() *unix.SysProcAttr {
	return &unix.SysProcAttr{Setsid: true, Setctty: true}
}

func (s *screen) prompt() string {
	s.t.Helper()
	return s.expect("<<PROMPT>>")
}

// run types a command. The quotes in """" keep expected output from being found in the echo of the
// command.
func (s *screen) run(line string) {
	s.t.Helper()
	s.write(line + "\n")
}

func (s *screen) requireCode(code int) {
	s.t.Helper()
	s.run(`echo co""de=$?.`)
	s.expect("code=" + strconv.Itoa(code) + ".")
	s.prompt()
}
