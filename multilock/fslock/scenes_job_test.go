//go:build linux

package fslock_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

const jobTTL = 2 * time.Second

// orphanJob leaves the lock "job" of a wrapper that was killed while its job is alive, and returns the
// job's process group.
func orphanJob(t *testing.T, base string) int {
	t.Helper()
	wrapper := newNeighbour(t, setting{}, order{Base: base})
	wrapper.must(t, order{Do: "acquire", Name: "job", TTL: jobTTL, Job: true})
	job := wrapper.must(t, order{Do: "job"}).PGID
	t.Cleanup(func() { _ = syscall.Kill(-job, syscall.SIGKILL) })
	wrapper.End()
	return job
}

// On its own host the lock is held as long as a process of the job is alive, far beyond the TTL, and free
// when the last one has ended.
// Rule: job
func TestJobKeepsTheLockOfItsKilledWrapper(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	job := orphanJob(t, base)
	src := open(t, fslock.Options{Base: base})
	o := observe(t, src, "job", source.StalePolicy{})
	for silence := time.Duration(0); silence < 2*jobTTL; {
		seen := look(t, o)
		require.Equal(t, source.StateHeld.String(), seen.State.String())
		require.Contains(t, seen.Why, "its job lives")
		silence = seen.Silence
		time.Sleep(jobTTL / 10)
	}
	_, err := multilock.TryAcquire(within(t), src, "job", multilock.Options{})
	require.ErrorIs(t, err, source.ErrHeld)

	require.NoError(t, syscall.Kill(-job, syscall.SIGKILL))
	acquire(t, src, "job", multilock.Options{TTL: long})
	requireBroken(t, src, "job", "no") // longer exists; or no heartbeat, on a host too busy for a search
}

// Another host cannot see the job: there the lock of a wrapper without heartbeats ends with its TTL. That
// is why the job must die with its wrapper.
// Rule: job, silence
func TestJobOfAKilledWrapperIsInvisibleElsewhere(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	orphanJob(t, base)
	src := open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	acquire(t, src, "job", multilock.Options{TTL: long})
	requireBroken(t, src, "job", "no heartbeat")
}

// A process on its host knows at once that a killed holder without a job is dead; other hosts have to wait.
// A wrapper that was killed between acquiring the lock and recording its job may have started it: a process
// on its host sees whether it has.
// Rule: process-gone, job
func TestKilledHolder(t *testing.T) {
	for name, c := range map[string]struct {
		view     string
		order    order
		evidence string
	}{
		"without a job":           {"same host", order{TTL: long}, "no longer exists"},
		"without a job, far away": {"silence only", order{TTL: jobTTL}, "no heartbeat"},
		"with a job":              {"same host", order{TTL: long, Job: true}, "no process carries"},
		"with a job, far away":    {"silence only", order{TTL: jobTTL, Job: true}, "no heartbeat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := fresh(t)
			killHolder(t, base, "job", c.order)
			src := open(t, fslock.Options{Base: base, Self: views(t)[c.view]})
			acquire(t, src, "job", multilock.Options{TTL: long})
			requireBroken(t, src, "job", c.evidence)
		})
	}
}

// A stopped wrapper sends no heartbeat, but its job continues: its mark shows it, because its group is
// gone.
// Rule: job
func TestJobKeepsTheLockOfItsStoppedWrapper(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	wrapper := newNeighbour(t, setting{}, order{Base: base})
	marks := wrapper.must(t, order{Do: "acquire", Name: "job", TTL: jobTTL, Job: true}).Environ
	src := open(t, fslock.Options{Base: base})
	o := observe(t, src, "job", source.StalePolicy{})
	job := exec.Command("sleep", "600")
	job.Env = marks
	require.NoError(t, job.Start())
	t.Cleanup(func() { _, _ = job.Process.Kill(), job.Wait() })
	wrapper.Signal(t, syscall.SIGSTOP)
	for silence := time.Duration(0); silence < 2*jobTTL; {
		seen := look(t, o)
		require.Equal(t, source.StateHeld.String(), seen.State.String(), seen.Why)
		silence = seen.Silence
		time.Sleep(jobTTL / 10)
	}
	require.Contains(t, look(t, o).Why, "(sleep) carries the lock's token")
	_, _ = job.Process.Kill(), job.Wait()
	acquire(t, src, "job", multilock.Options{TTL: long})
	requireBroken(t, src, "job", "no heartbeat")
}

// A job file that is read while it is being written is read again, though the directory does not show that
// it has grown. So is one that did not exist yet.
// Rule: job
func TestMarkThatIsReadHalfWritten(t *testing.T) {
	job, err := process.FindGroup(syscall.Getpgrp())
	require.NoError(t, err)
	whole, err := json.Marshal(job)
	require.NoError(t, err)
	for _, cut := range []int{0, 1, len(whole) / 2, len(whole) - 1} {
		t.Run(fmt.Sprint("after ", cut, " bytes"), func(t *testing.T) {
			base := fresh(t)
			src := open(t, fslock.Options{Base: base})
			c := claim(self(t), time.Hour, time.Minute)
			c.Job = true
			plant(t, src, "job", c)
			mark := filepath.Join(base, fslock.DefaultGroup, "job", "job.job")
			require.NoError(t, os.WriteFile(mark, whole[:cut], 0o666))

			o := observe(t, src, "job", source.StalePolicy{})
			for range 3 {
				require.NotContains(t, look(t, o).Why, "its job lives", "half a mark proves nothing")
			}
			require.NoError(t, os.WriteFile(mark, whole, 0o666))
			require.Contains(t, look(t, o).Why, "its job lives")
		})
	}
}

// Where times have a coarse step, nothing shows that a job file was created or replaced.
// Rule: job, coarse-times
func TestMarkThatComesWithinOneStepOfTheTimes(t *testing.T) {
	base := fresh(t)
	src := open(t, fslock.Options{Base: base, FS: coarse(24 * time.Hour)})
	c := claim(theDead(self(t)), time.Hour, time.Minute)
	c.Job = true
	lease := plant(t, open(t, fslock.Options{Base: base}), "job", c)
	o := observe(t, src, "job", source.StalePolicy{})
	look(t, o)
	require.NoError(t, lease.MarkJob(t.Context(), someJob(self(t))))
	lookUntil(t, o, source.StateDead, nil) // while others start programs, one of them may belong to the job
	job, err := process.FindGroup(syscall.Getpgrp())
	require.NoError(t, err)
	require.NoError(t, lease.MarkJob(t.Context(), job))
	require.Contains(t, look(t, o).Why, "its job lives")
}

// The next job's file replaces the previous one just after that was read: the observer must notice.
// Rule: job
func TestMarkThatIsReplacedRightAfterItWasRead(t *testing.T) {
	base, faulty := fresh(t), sharedFS()
	c := claim(theDead(self(t)), time.Hour, time.Minute)
	c.Job = true
	lease := plant(t, open(t, fslock.Options{Base: base}), "job", c)
	require.NoError(t, lease.MarkJob(t.Context(), someJob(self(t))))
	job, err := process.FindGroup(syscall.Getpgrp())
	require.NoError(t, err)
	o := observe(t, open(t, fslock.Options{Base: base, FS: faulty}), "job", source.StalePolicy{})
	mark := filepath.Join(base, fslock.DefaultGroup, "job", "job.job")
	faulty.Inject(at("file.close", faultfs.After, mark, func(faultfs.Op) error {
		faulty.Inject(nil)
		return lease.MarkJob(t.Context(), job)
	}))
	look(t, o)
	require.ErrorIs(t, o.Break(t.Context()), source.ErrHeld)
	require.Contains(t, look(t, o).Why, "its job lives")
}

// Of several recorded jobs, one that is alive is enough, at any position, and truncated or unknown lines
// between them change nothing.
// Rule: job
func TestMarkOfSeveralJobs(t *testing.T) {
	living, err := process.FindGroup(syscall.Getpgrp())
	require.NoError(t, err)
	line := func(g process.Group) string {
		text, err := json.Marshal(g)
		require.NoError(t, err)
		return string(text)
	}
	over := line(someJob(self(t)))
	for name, c := range map[string]struct {
		mark  string
		lives bool
	}{
		"the last lives":           {over + "\n" + over + "\n" + line(living), true},
		"the first lives":          {line(living) + "\n" + over, true},
		"a torn one":               {over[:len(over)/2] + "\n" + line(living) + "\n", true},
		"foreign bytes":            {"\x00\xff\n\n{}\nnull\n" + line(living), true},
		"more than anybody writes": {strings.Repeat(over+"\n", source.MaxGroups+1), true},
		"all are over":             {over + "\n" + over, false},
		"as many as one may write": {strings.Repeat(over+"\n", source.MaxGroups), false},
		"more, of another host":    {strings.Repeat(line(process.Group{Boot: "b", Namespace: "n", PGID: 7})+"\n", source.MaxGroups+1), false},
	} {
		t.Run(name, func(t *testing.T) {
			base := fresh(t)
			src := open(t, fslock.Options{Base: base})
			claim := claim(theDead(self(t)), time.Hour, time.Minute)
			claim.Job = true
			plant(t, src, "job", claim)
			require.NoError(t, os.WriteFile(filepath.Join(base, fslock.DefaultGroup, "job", "job.job"), []byte(c.mark), 0o666))
			o := observe(t, src, "job", source.StalePolicy{})
			if !c.lives {
				lookUntil(t, o, source.StateDead, nil)
				return
			}
			seen := look(t, o)
			require.Equal(t, source.StateHeld.String(), seen.State.String(), seen.Why)
			require.Contains(t, seen.Why, "its job lives")
		})
	}
}
