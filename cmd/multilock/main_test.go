//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/multilock/go/cmd/multilock/job"
	"github.com/multilock/go/multilock/locktest"
)

// binaryVariable tells the tests where the binary is.
const binaryVariable = "MULTILOCK_TEST_BINARY"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == job.GuardArg {
		os.Exit(job.Guard(os.Stdin)) // of a job that a test runs without the binary
	}
	locktest.HearHangups()
	code, err := testWithBinary(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// testWithBinary builds the command as it is shipped. Its directory is open to
// all, because some tests run it as another user.
func testWithBinary(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "multilock-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // as said above
		return 1, err
	}
	binary := filepath.Join(dir, "multilock")
	build := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("build the binary: %w", err)
	}
	if err := os.Setenv(binaryVariable, binary); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
