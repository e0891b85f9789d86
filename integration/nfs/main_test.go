package nfs_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/multilock/go/internal/testkit/actor"
)

func TestMain(m *testing.M) {
	actor.Play(map[string]func() error{"actor": playActor, "worker": playWorker})
	if inLab() {
		if err := addHosts(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func inLab() bool { return os.Getenv("MULTILOCK_LAB") == "1" }

// needLab skips a test where there is no NFS.
func needLab(t testing.TB) {
	t.Helper()
	if !inLab() {
		t.Skip("needs a real NFS cluster: integration/nfs/run boots one and runs this in it")
	}
}

// addHosts boots the hosts that all tests share.
func addHosts() error {
	for _, h := range hosts() {
		if err := tool("host", "add", h.name, "vers="+h.version+",hard"); err != nil {
			return err
		}
	}
	return nil
}
