package nfs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// All hosts are given the same jobs of "run --once": each runs once. Barriers that
// were there before any of the jobs open on all hosts, and none before the last job
// has ended.
func TestRunOnceOnEveryHost(t *testing.T) {
	needCommand(t)
	r := newTrial(t, jobsAtLength(10, 100), 1)
	list := r.file("members", strings.Join(r.jobs, "\n")+"\n")
	var barriers, hands sync.WaitGroup
	for _, h := range hosts() {
		barriers.Go(func() { r.endsLast(r.shell(h, `"$0" -d "$1" wait --members-from `+list)) })
	}
	for _, h := range hosts() {
		hands.Go(func() { r.endsLast(r.shell(h, onceLoop, list, r.witness.shell(":"))) })
	}
	hands.Wait()
	barriers.Wait()
	require.Empty(t, r.faults())
	require.Equal(t, len(r.jobs), r.witness.read(t).runs())
}

// onceLoop has the command, the base directory, the file of names and the job.
const onceLoop = `while read -r name; do "$0" -d "$1" run -q -n "$name" --once --wait forever -- sh -c "$3" || exit; done <"$2"`

// jobsAtLength is how many jobs, or rounds, a test has in a short run and in a long one.
func jobsAtLength(short, long int) int {
	if testing.Short() {
		return short
	}
	return long
}

// file is one that all hosts see, and that is not on the share.
func (r *trial) file(name, content string) string {
	r.t.Helper()
	path := filepath.Join(filepath.Dir(r.witness.path), name)
	require.NoError(r.t, os.WriteFile(path, []byte(content), 0o666))
	return path
}

// shell is a script on a host, with the command as $0 and the base directory as $1.
func (r *trial) shell(h host, script string, args ...string) *exec.Cmd {
	cmd := exec.Command("on", append([]string{h.name, "sh", "-c", script, command, r.on(h)}, args...)...)
	cmd.Env = append(os.Environ(), workerVariable+"="+h.name)
	return cmd
}

// endsLast runs a program that has to succeed, and must not before every job has
// ended.
func (r *trial) endsLast(cmd *exec.Cmd) {
	r.succeeds(cmd)
	a := r.witness.read(r.t)
	for _, name := range r.jobs {
		if j := a[name]; j == nil || !j.runs[len(j.runs)-1].ended {
			r.t.Errorf("%s ended, and %s had not", cmd, name)
			return
		}
	}
}

func (r *trial) succeeds(cmd *exec.Cmd) {
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Errorf("%s: %v: %s", cmd, err, out)
	}
}
