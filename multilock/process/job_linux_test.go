package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/process"
)

// jobOf starts a process that carries the mark of a new token.
func jobOf(t *testing.T, role string) (token string, a *actor.Actor) {
	t.Helper()
	token, a = uuid.NewString(), actor.Prepare(t, role, nil)
	a.Env = append(a.Env, process.TokenEntry(token))
	return token, a
}

// requireNoJob looks until it is clear that no process is alive. On a host where processes come and go, one
// look may not be enough.
func requireNoJob(t *testing.T, holder process.Identity, token string, me process.Identity) {
	t.Helper()
	var found process.Evidence
	require.Eventually(t, func() bool {
		found = holder.JudgeJob(process.JobMark{Token: token}, me)
		return found.Life != process.Unknown
	}, time.Minute, time.Millisecond)
	requireLife(t, process.Gone, found)
}

func TestJobIsAliveByItsMark(t *testing.T) {
	me := self(t)
	for name, attributes := range map[string]*syscall.SysProcAttr{
		"in our group": {}, "in a group of its own": {Setpgid: true}, "in a session of its own": {Setsid: true},
	} {
		t.Run(name, func(t *testing.T) {
			token, child := jobOf(t, "sit")
			child.SysProcAttr = attributes
			requireNoJob(t, me, token, me)
			child.Start(t)
			hear[struct{}](t, child)
			found := me.JudgeJob(process.JobMark{Token: token}, me)
			requireLife(t, process.Alive, found)
			require.Equal(t, fmt.Sprintf("process %d %s carries the lock's token", child.Process.Pid, ownName()), found.Why)
			require.NoError(t, unix.Kill(child.Process.Pid, unix.SIGSTOP))
			inState(t, child.Process.Pid, unix.WSTOPPED)
			requireLife(t, process.Alive, me.JudgeJob(process.JobMark{Token: token}, me))
			zombify(t, child.Process.Pid)
			requireNoJob(t, me, token, me)
			child.End()
			requireNoJob(t, me, token, me)
		})
	}
}

// The mark is a whole entry, in the environment that a process was started with.
func TestJobMarkIsAWholeEntry(t *testing.T) {
	me := self(t)
	token, child := jobOf(t, "sit")
	child.Env = append(child.Env, "AN_"+process.TokenEntry(token+"-other"))
	child.Start(t)
	hear[struct{}](t, child)
	requireLife(t, process.Alive, me.JudgeJob(process.JobMark{Token: token}, me))
	requireNoJob(t, me, token[:len(token)-1], me)
	requireNoJob(t, me, token+"-other", me)
}

// A process that is older than the holder does not belong to its job.
func TestJobIsNotOlderThanItsHolder(t *testing.T) {
	me := self(t)
	token, child := jobOf(t, "sit")
	child.Start(t)
	hear[struct{}](t, child)
	holder := find(t, child.Process.Pid)
	requireLife(t, process.Alive, holder.JudgeJob(process.JobMark{Token: token}, me))
	holder.Start++
	requireNoJob(t, holder, token, me)
	holder.Start = 0
	requireLife(t, process.Alive, holder.JudgeJob(process.JobMark{Token: token}, me))
}

// A job of short-lived processes, one at a time: each starts the next and ends. It is never reported as
// gone.
func TestJobThatHops(t *testing.T) {
	me := self(t)
	token, hopper := jobOf(t, "hop")
	ended, input, err := os.Pipe()
	require.NoError(t, err)
	defer ended.Close()
	hopper.ExtraFiles = []*os.File{input} // open as long as one of them lives
	hopper.Start(t)
	require.NoError(t, input.Close())
	require.NoError(t, hopper.Wait())
	for range 200 {
		found := me.JudgeJob(process.JobMark{Token: token}, me)
		require.NotEqual(t, process.Gone, found.Life, found.Why)
	}
	require.NoError(t, hopper.Input.Close()) // the next process ends
	_, err = ended.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
	reapAll()
	requireNoJob(t, me, token, me)
}

// Of a job with a key, others can read the lock's token and the key's digest.
func TestJobKeyIsNotToBeGuessed(t *testing.T) {
	me, token, key := self(t), uuid.NewString(), process.NewJobKey()
	mark := process.JobMark{Token: token, KeyDigest: key.Digest()}
	for entry, life := range map[string]process.Life{
		process.TokenEntry(token):            process.Gone,
		process.JobKey(key.Digest()).Entry(): process.Gone,
		process.JobKey("").Entry():           process.Gone,
		process.NewJobKey().Entry():          process.Gone,
		key.Entry():                          process.Alive,
	} {
		child := exec.Command("sleep", "600")
		child.Env = []string{entry}
		require.NoError(t, child.Start())
		found := me.JudgeJob(mark, me)
		_, _ = child.Process.Kill(), child.Wait()
		if life == process.Gone && found.Life == process.Unknown {
			t.Skip("this user cannot see on this host whether a job lives")
		}
		requireLife(t, life, found)
	}
}

// reapAll waits for the adopted orphans that have ended.
func reapAll() {
	for {
		if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil {
			return
		}
	}
}

// Other processes that come and go do not hide that a job is gone.
func TestJobOnABusyHost(t *testing.T) {
	me := self(t)
	for range 2 {
		busy := exec.Command("/bin/sh", "-c", "while :; do /bin/true; done")
		require.NoError(t, busy.Start())
		t.Cleanup(func() { _, _ = busy.Process.Kill(), busy.Wait() })
	}
	requireNoJob(t, me, uuid.NewString(), me)
}

func BenchmarkJudgeJob(b *testing.B) {
	me := self(b)
	token := uuid.NewString()
	for b.Loop() {
		me.JudgeJob(process.JobMark{Token: token}, me)
	}
}
