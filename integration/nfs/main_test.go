package nfs_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// roleVariable makes the test binary play a process on a host.
const roleVariable = "MULTILOCK_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
	case "actor":
		exit(playActor(os.Stdin, os.Stdout))
	case "batch":
		exit(workBatch(os.Getenv(batchVariable)))
	case "swapper":
		exit(playSwapper(os.Getenv(swapperVariable)))
	case "conformance": // one test of this binary, on a host
		os.Exit(m.Run())
	default:
		exit(fmt.Errorf("unknown role %q", role))
	}
	if inLab() {
		if err := addHosts(); err != nil {
			exit(err)
		}
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
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
		out, err := exec.Command("host", "add", h.name, "vers="+h.version+",hard").CombinedOutput()
		if err != nil {
			return fmt.Errorf("add host %s: %w: %s", h.name, err, out)
		}
	}
	return nil
}
