package fslock_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// failingSweep makes the test play the sweep that fails.
const failingSweep = "MULTILOCK_TEST_FAILING_SWEEP"

// Under -failfast, nothing that a sweep starts after a failure is run, and so nothing
// says that it has come to its end. It ends all the same, in all scenes.
func TestFailingSweepEnds(t *testing.T) {
	if os.Getenv(failingSweep) != "" {
		sideBySide(t, []string{"a scene that fails", "a scene without an end"}, func(t *testing.T, scene string) {
			sweepOperations(t, 2, func(t *testing.T, n int) (ended bool) {
				require.False(t, scene == "a scene that fails" && n == 3)
				return false
			})
		})
		return
	}
	cmd := exec.CommandContext(within(t), "/proc/self/exe", "-test.run", "^TestFailingSweepEnds$", "-test.failfast", "-test.timeout", "30s")
	cmd.Env = append(os.Environ(), failingSweep+"=yes")
	output, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "a_scene_that_fails/3")
	require.NotContains(t, string(output), "timed out")
}
