package mongo_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// childVariable makes the test binary play a worker of the stress test. Its value
// is the worker's shift.
const childVariable = "MULTILOCK_TEST_CHILD"

func TestMain(m *testing.M) {
	shift := os.Getenv(childVariable)
	if shift == "" {
		os.Exit(run(m))
	}
	if err := playWorker(shift); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// run lets more tests run at a time than there are processors: after a fault a driver
// waits for half a second before it asks the server again, and that is what most of
// the time goes to. An option on the command line wins.
func run(m *testing.M) int {
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
