//go:build linux

package fslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// A number whose process started at another time than the record says belongs
// to somebody else.
func TestForgedStartTimeIsAnotherProcess(t *testing.T) {
	base := fresh(t)
	neighbour, stranger := open(t, fslock.Options{Base: base}), open(t, fslock.Options{Base: base, Self: elsewhere(t)})
	earlier := self(t)
	earlier.Start--
	plant(t, neighbour, "job", claim(earlier, long, time.Minute))

	seen := look(t, observe(t, neighbour, "job", source.Patience{}))
	require.Equal(t, source.StateDead.String(), seen.State.String())
	require.Contains(t, seen.Why, "another process")
	seen = look(t, observe(t, stranger, "job", source.Patience{}))
	require.Equal(t, source.StateHeld.String(), seen.State.String())
	require.Contains(t, seen.Why, "another host")

	acquire(t, neighbour, "job", multilock.Options{TTL: long})
}

const rebootBeat = 100 * time.Millisecond

// beforeTheReboot is this host's identity of an earlier boot, and the machine's
// own as it is now; both have a machine id, which this system may lack.
func beforeTheReboot(t *testing.T) (then, now process.Identity) {
	now = self(t)
	now.Machine = "00000000ba5eba11"
	then = now
	then.Boot = "00000000-0000-4000-8000-00000000b007"
	return then, now
}

// The same machine id and host name under another boot may be a machine that was
// rebooted. It may as well be one that lives, cut off, while a copy of it was started
// elsewhere; and that one relies on its TTL.
func TestHolderFromBeforeTheRebootKeepsItsTTL(t *testing.T) {
	t.Parallel()
	base := fresh(t)
	then, now := beforeTheReboot(t)
	src := open(t, fslock.Options{Base: base, Self: now})
	lease := plant(t, src, "job", claim(then, long, rebootBeat))
	o := observe(t, src, "job", source.Patience{})
	for start := boottime.Now(); start.Elapsed() < 8*rebootBeat; time.Sleep(rebootBeat / 10) {
		seen := look(t, o)
		require.Equal(t, source.StateHeld.String(), seen.State.String(), seen.Why)
	}
	require.NoError(t, lease.Renew(t.Context()))
}

// Copies of a virtual machine that was running agree in the boot id and the pid
// namespace, and have a name and a machine id each: a number that is nobody's here is
// somebody's there.
func TestHolderOnACopyOfThisMachineIsJudgedBySilence(t *testing.T) {
	base := fresh(t)
	here := self(t)
	here.Machine = "00000000ba5eba11"
	copied := here
	copied.Host, copied.Machine = "copy", "00000000feedf00d"
	copied.Start--
	src := open(t, fslock.Options{Base: base, Self: here})
	c := claim(copied, long, time.Minute)
	c.Job = true
	lease := plant(t, open(t, fslock.Options{Base: base, Self: copied}), "job", c)
	for _, pgid := range []int{1 << 30, here.PID} { // one that nobody has here, and one that has somebody
		job := process.Group{Host: copied.Host, Machine: copied.Machine, Boot: copied.Boot, Namespace: copied.Namespace, PGID: pgid}
		require.NoError(t, lease.MarkJob(t.Context(), job))
		seen := look(t, observe(t, src, "job", source.Patience{}))
		require.Equal(t, source.StateHeld.String(), seen.State.String())
		require.Contains(t, seen.Why, "silent for less than its ttl of 1h0m0s, and runs on another host (copy)")
	}
}
