package guides_test

import (
	"os"
	"testing"

	"github.com/multilock/go/integration/world"
)

func TestMain(m *testing.M) {
	os.Exit(world.Main(m, "../..", "cron", "libfaketime", "openssh-server", "openssh-client", "slurmctld", "slurmd", "slurm-client", "munge", "python3", "python3-filelock"))
}
