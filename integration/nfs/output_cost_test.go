package nfs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Capturing the output of jobs costs the server little more than running them silently, and no file
// for each job. Jobs that print a line run on one host; the same list runs silently, and with a
// file for each job. How often results are committed depends on how long the jobs take, so the
// limits apply only to writes.
// Rule: output
func TestCostOfOutput(t *testing.T) {
	needCommand(t)
	const jobs = 40 // starting a process is slow on an emulated machine
	for _, h := range hosts() {
		t.Run("v"+h.version, func(t *testing.T) {
			written := map[string]int{}
			for _, c := range []struct{ what, job, logs string }{
				{"silent", "true", ""}, {"together", "echo this is a line", ""}, {"a file each", "echo this is a line", "there"},
			} {
				p := newPlace(t)
				list := filepath.Join(outside(t), "list") // root runs no list from a share that anybody may write
				require.NoError(t, os.WriteFile(list, []byte(strings.Repeat(c.job+"\n", jobs)), 0o644))
				args := []string{"batch", "-g", ".locks", "-q", "-j4"}
				if c.logs != "" {
					args = append(args, "--logs", p.on(h, c.logs))
				}
				start := time.Now()
				spent := h.spends(t, func() { p.multilockOn(t, h, append(args, list)...) })
				took := time.Since(start)
				files := len(p.entries(t, ".multilock", "groups", ".locks", "logs")) + len(p.entries(t, "there"))
				written[c.what] = spent["WRITE"]
				t.Logf("%s: %.2f requests for each job, %d files, %s: %s", c.what, float64(spent.total())/jobs, files, took.Round(time.Millisecond), spent)
				if c.what == "together" {
					require.Equal(t, 1, files)
					require.Equal(t, "this is a line\n", string(p.multilockOn(t, hosts()[0], "logs", "07")))
				}
			}
			require.LessOrEqual(t, written["together"], written["silent"]+3*jobs)
		})
	}
}
