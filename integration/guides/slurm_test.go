package guides_test

import (
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// slurm starts Slurm, which runs as long as this world.
func slurm(t *testing.T) {
	t.Helper()
	hosts(t)
	require.NoError(t, startSlurm())
}

//nolint:gochecknoglobals // one Slurm in one world
var startSlurm = sync.OnceValue(func() error {
	out, err := exec.Command("bash", "-e", "testdata/slurm").CombinedOutput()
	if err != nil {
		return fmt.Errorf("start Slurm: %w: %s", err, out)
	}
	return nil
})

// array returns the guide's batch script, which tests write into the directory that it expects.
func array(t *testing.T) string {
	t.Helper()
	for _, b := range allBlocks(t) {
		if strings.Contains(b.text, "#SBATCH --array") {
			return b.text
		}
	}
	t.Fatal("no guide has a job array")
	return ""
}

const ended20 = `test -z "$(squeue -h)"`

func slurmArray(t *testing.T, b block) {
	slurm(t)
	p := newPlace(t)
	p.must(convert)
	p.write("/shared/convert/convert.sbatch", array(t))
	p.must(b.text)
	p.eventually(ended20)
	require.ElementsMatch(t, parts(), p.calls(), p.sh("cat /shared/convert/*.log; tail -n 20 /var/log/slurm*").out)
	p.must(`test "$(squeue -h -t all -n convert -r -o %T | sort | uniq -c | tr -d ' ')" = 20COMPLETED`)
	p.must("multilock -d /shared/convert -g convert wait --expect 2")
}

func slurmNext(t *testing.T, b block) {
	slurm(t)
	p := newPlace(t)
	p.must(convert + "cd /shared/convert; multilock -d /shared/convert -g convert batch -q jobs.txt")
	p.calls()
	p.write("/shared/convert/next-step.sbatch", "#!/bin/sh\nexec next-step\n")
	p.must("cd /shared/convert && " + b.text)
	p.eventually("grep -q next-step " + ran)
}

// The job survives whatever Slurm does to a task: nothing is recorded, and the job runs elsewhere.
func TestSlurmEndsATask(t *testing.T) {
	for name, end := range map[string]string{"requeue": "scontrol requeue", "scancel": "scancel"} {
		t.Run(name, func(t *testing.T) {
			slurm(t)
			p := newPlace(t)
			p.must("mkdir /shared/convert; echo 'echo ${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID >>begun; test -e go || sleep 50' >/shared/convert/jobs.txt")
			p.write("/shared/convert/convert.sbatch", array(t))
			p.must("cd /shared/convert && sbatch convert.sbatch")
			p.eventually("test -s /shared/convert/begun")
			holder := strings.TrimSpace(p.must("cat /shared/convert/begun"))
			require.NotEmpty(t, holder)
			p.must("touch /shared/convert/go; " + end + " " + holder)
			p.must("multilock -d /shared/convert -g convert wait --expect 1 --timeout 50")
			p.must("scancel -u root")
			p.eventually(ended20)
			require.Equal(t, "2\n", p.must("wc -l </shared/convert/begun"), "it ran twice, and ended once")
		})
	}
}

// A lock is taken over early only if Slurm reports that the holder's job is over.
func TestProbeAsksSlurm(t *testing.T) {
	slurm(t)
	p := newPlace(t)
	p.write("/shared/hold.sbatch", "#!/bin/sh\nmultilock -d /shared run -n p --ttl 60s -- sleep 300\n")
	job := strings.TrimSpace(p.must("cd /shared && sbatch --parsable hold.sbatch"))
	p.eventually("multilock -d /shared status p; test $? = 121")

	const try = "multilock -d /shared run -n p --probe slurm --wait "
	require.Equal(t, 124, p.sh(try+"2 -- true").code, "the job runs")

	p.must("kill -STOP $(cat /run/slurmctld.pid)")
	// The holder's processes are gone, and Slurm cannot confirm it.
	p.must(`for i in 1 2 3; do ssh -n host$i 'pkill -KILL -f "^multilock -d /shared run -n p" ; pkill -KILL -f "^sleep 300"; true'; done`)
	got := p.sh(try + "20 -- true")
	require.Equal(t, 124, got.code, "%s%s", got.out, got.errout)
	p.must("kill -CONT $(cat /run/slurmctld.pid)")

	p.eventually(`test "$(squeue -h -t all -j ` + job + ` -o %T)" = FAILED`)
	p.must(try + "forever -- true")
	require.Contains(t, p.must("multilock -d /shared history p"), "its Slurm job "+job+" is over (FAILED)")
}

// A job that reaches its time limit is warned in time, whether Slurm signals only multilock early
// (--signal) or all processes at the limit. The job ends, the lock is released, and a waiter acquires
// it.
func TestSlurmTimeLimit(t *testing.T) {
	slurm(t)
	p := newPlace(t)
	for name, signal := range map[string]string{"signal": "#SBATCH --signal=B:TERM@55\n", "limit": ""} {
		p.write("/shared/"+name+".sbatch", "#!/bin/sh\n#SBATCH --time=1 --output=/shared/%x.log\n"+signal+
			"exec multilock -d /shared run -n "+name+` -- sh -c 'trap "echo told >>/shared/told.$MULTILOCK_NAME; exit 0" TERM; sleep 300 & wait'`+"\n")
		p.must("cd /shared && sbatch " + name + ".sbatch")
	}
	for _, name := range []string{"signal", "limit"} {
		p.eventually("multilock -d /shared status " + name + "; test $? = 121")
		p.must("sbatch --output=/shared/next." + name + " --wrap 'multilock -d /shared run -n " + name + " --wait forever -- echo next'")
	}
	// Slurm's limits are in minutes, and Slurm checks them every 30 seconds.
	require.Eventually(t, func() bool { return p.sh(ended20).code == 0 }, 4*limit, time.Second)
	for name, state := range map[string]string{"signal": "COMPLETED", "limit": "TIMEOUT"} {
		// If a shell gets a second signal while its trap runs, it runs the trap again.
		require.Equal(t, "told\n", p.must("sort -u /shared/told."+name), p.sh("cat /shared/"+name+".sbatch.log").out)
		require.Contains(t, p.must("cat /shared/next."+name), "next\n")
		require.Equal(t, state+"\n", p.must("squeue -h -t all -n "+name+".sbatch -o %T"))
		require.Equal(t, "acquired\nreleased\nacquired\nreleased\n", p.must("multilock -d /shared history --json "+name+` | sed 's/.*"event":"\([a-z]*\)".*/\1/'`))
	}
}
