// Package clitest drives the multilock command in tests: it builds the binary,
// starts it, and reads what it says. It is for tests only.
//
// A package's TestMain calls [Main]; its tests prepare the binary with [Command], and
// start it with [Start] or [Run].
package clitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// binaryVariable tells the tests where the binary is.
const binaryVariable = "MULTILOCK_TEST_BINARY"

// Small has the tags of the shipped build for locks in directories.
const Small = "no_mongodb,no_cloudshell,no_etcd,no_postgres,no_s3,no_ping"

// Main builds the command as it is shipped, without the sources that the tags leave out, and runs the
// tests. It returns the exit code.
func Main(m *testing.M, source string, tags ...string) int {
	code, err := testWithBinary(m, source, tags)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// testWithBinary has the binary in a directory that is open to all, because some
// tests run it as another user.
func testWithBinary(m *testing.M, source string, tags []string) (code int, err error) {
	dir, err := os.MkdirTemp("", "multilock-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as said above
		return 1, err
	}
	binary := filepath.Join(dir, "multilock")
	if err := Build(source, binary, tags...); err != nil {
		return 1, err
	}
	if err := os.Setenv(binaryVariable, binary); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// Build builds the command as it is shipped, without the sources that the tags leave out.
func Build(source, binary string, tags ...string) error {
	tags = append(tags, "urfave_cli_no_docs")
	build := exec.Command("go", "build", "-tags", strings.Join(tags, ","), "-o", binary, ".") //nolint:gosec // tests say what
	build.Dir, build.Stderr = source, os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the binary: %w", err)
	}
	return nil
}

// Binary is the path of the binary.
func Binary() string { return os.Getenv(binaryVariable) }

// Command prepares the binary, in a directory of its own and in an environment with
// no variables of ours but those that are given.
func Command(t testing.TB, vars []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(Binary(), args...)
	cmd.Env = append(Environ(), vars...)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = Watchdog
	return cmd
}

// Shell makes of a prepared command a shell that runs a script, and skips the test if
// there is no such shell. The script finds the binary in its PATH.
func Shell(t testing.TB, cmd *exec.Cmd, shell, script string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(shell)
	if err != nil {
		t.Skipf("needs %s", shell)
	}
	cmd.Path, cmd.Args = path, []string{shell, "-c", script}
	return cmd
}

// Environ is that of the tests without any variable of ours but one (their locks are for this
// host alone), and with the binary's directory in its PATH.
func Environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "MULTILOCK_") || strings.HasPrefix(entry, "PATH=")
	})
	return append(env, "MULTILOCK_LOCAL=1", "PATH="+filepath.Dir(Binary())+":"+os.Getenv("PATH"))
}

// Lock is what tests read of a lock in the JSON of several commands.
type Lock struct {
	Name, State, Why, Token, Host, User, Command string
	PID                                          int
	TTL                                          float64  `json:"ttl_seconds"`
	Age                                          *float64 `json:"held_seconds"`
}

// Locks are those in what "status --json" printed.
func Locks(t testing.TB, status string) []Lock {
	t.Helper()
	var report struct{ Locks []Lock }
	require.NoError(t, json.Unmarshal([]byte(status), &report))
	return report.Locks
}
