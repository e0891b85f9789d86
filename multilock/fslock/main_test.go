//go:build linux

package fslock_test

import (
	"fmt"
	"os"
	"testing"
)

// childVariable makes the test binary play another process: its value is the
// role, see play.
const childVariable = "MULTILOCK_TEST_CHILD"

func TestMain(m *testing.M) {
	role := os.Getenv(childVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
}

// play is the one list of roles. It returns when the role is over.
func play(role string) error {
	switch role {
	case "puppet":
		return playPuppet(os.Stdin, os.Stdout)
	case "container":
		return playContainer()
	case "reuse":
		return playReuse()
	case "worker":
		return playWorker()
	case "sweep":
		return playSweep()
	}
	return fmt.Errorf("unknown role %q", role)
}
