package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binaryVariable tells the tests where the binary is.
const binaryVariable = "MULTILOCK_TEST_BINARY"

func TestMain(m *testing.M) {
	code, err := testWithBinary(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// testWithBinary builds the command as it is shipped.
func testWithBinary(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "multilock-cli-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	binary := filepath.Join(dir, "multilock")
	build := exec.Command("go", "build", "-tags", "urfave_cli_no_docs", "-o", binary, "./cmd/multilock")
	build.Dir, build.Stderr = filepath.Join("..", ".."), os.Stderr
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if err := build.Run(); err != nil {
		return 1, fmt.Errorf("build the binary: %w", err)
	}
	if err := os.Setenv(binaryVariable, binary); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
