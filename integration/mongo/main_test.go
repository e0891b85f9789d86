package mongo_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/multilock/go/internal/testkit/actor"
)

// TestMain lets more tests run at a time than there are processors: after a fault a driver
// waits for half a second before it asks the server again, and that is what most of
// the time goes to. An option on the command line wins.
func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"worker": playWorker})
	if err := flag.Set("test.parallel", "16"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
