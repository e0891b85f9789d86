//go:build linux

package fslock_test

import (
	"os"
	"testing"

	"github.com/multilock/go/internal/testkit/actor"
)

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{
		"neighbour": obeyOrders, "container": playContainer, "worker": playWorker, "sweep": playSweep,
	})
	os.Exit(m.Run())
}
