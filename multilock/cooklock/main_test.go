package cooklock_test

import (
	"fmt"
	"os"
	"testing"
)

// childVariable makes the test binary play another process: its value is the role,
// see play.
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
