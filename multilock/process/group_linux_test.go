package process_test

import (
	"encoding/json"
	"fmt"
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/multilock/go/internal/testkit/actor"
	"github.com/multilock/go/multilock/process"
)

// groupOf starts the leader of a process group and waits until it runs.
func groupOf(t *testing.T, role string) *actor.Actor {
	t.Helper()
	leader := actor.Prepare(t, role, nil)
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leader.Start(t)
	return leader
}

// pair starts a leader and a member of its group; the member becomes our child when the leader ends.
func pair(t *testing.T) (group process.Group, leader *actor.Actor, member int) {
	t.Helper()
	leader = groupOf(t, "lead")
	member = hear[int](t, leader)
	return findGroup(t, leader.Process.Pid), leader, member
}

func findGroup(t *testing.T, pgid int) process.Group {
	t.Helper()
	group, err := process.FindGroup(pgid)
	require.NoError(t, err)
	return group
}

// reap waits for an adopted orphan.
func reap(t *testing.T, pid int) {
	t.Helper()
	for {
		_, err := unix.Wait4(pid, nil, 0, nil)
		if err != unix.EINTR {
			require.NoError(t, err)
			return
		}
	}
}

func TestGroupLivesAndEnds(t *testing.T) {
	me, leader := self(t), groupOf(t, "sit")
	group := findGroup(t, leader.Process.Pid)
	id := find(t, leader.Process.Pid)
	require.Equal(t, process.Group{
		Host: id.Host, Machine: id.Machine, Boot: id.Boot, Namespace: id.Namespace, PGID: id.PID, Start: id.Start,
	}, group)

	found := group.Judge(me)
	requireLife(t, process.Alive, found)
	require.Contains(t, found.Why, ownName())
	leader.End()
	found = group.Judge(me)
	requireLife(t, process.Gone, found)
	require.Contains(t, found.Why, "no longer exists")
	_, err := process.FindGroup(group.PGID)
	require.ErrorIs(t, err, process.ErrNotFound)
}

func TestGroupOutlivesItsLeader(t *testing.T) {
	me := self(t)
	group, leader, member := pair(t)
	zombify(t, leader.Process.Pid)
	requireLife(t, process.Alive, group.Judge(me))
	leader.End()
	requireLife(t, process.Alive, group.Judge(me))
	requireLife(t, process.Gone, process.Identity{
		Host: me.Host, Boot: group.Boot, Namespace: group.Namespace, PID: group.PGID, Start: group.Start,
	}.Judge(me))

	late := findGroup(t, group.PGID)
	require.Zero(t, late.Start)
	requireLife(t, process.Alive, late.Judge(me))

	require.NoError(t, unix.Kill(member, unix.SIGSTOP))
	inState(t, member, unix.WSTOPPED)
	requireLife(t, process.Alive, group.Judge(me))

	zombify(t, member)
	found := group.Judge(me)
	requireLife(t, process.Gone, found)
	require.Contains(t, found.Why, "nothing but zombies")
	reap(t, member)
	requireLife(t, process.Gone, group.Judge(me))
}

func TestGroupOfZombies(t *testing.T) {
	me := self(t)
	group, leader, member := pair(t)
	zombify(t, leader.Process.Pid)
	zombify(t, member)
	requireLife(t, process.Gone, group.Judge(me))
	reap(t, member)
	requireLife(t, process.Gone, group.Judge(me))
}

func TestGroupWhoseNumberHasAnotherOwner(t *testing.T) {
	me := self(t)
	group, leader, member := pair(t)
	group.Start++
	found := group.Judge(me)
	requireLife(t, process.Gone, found)
	require.Contains(t, found.Why, "now belongs to another process "+ownName())
	require.NoError(t, unix.Kill(member, unix.SIGKILL))
	require.NoError(t, leader.Wait(), "it ends once it has reaped its member")
}

// A leader may move into another group and leave members behind.
func TestGroupThatItsLeaderHasLeft(t *testing.T) {
	me, target := self(t), groupOf(t, "sit")
	leader := actor.Prepare(t, "lead", nil)
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	leader.Env = append(leader.Env, fmt.Sprintf("%s=%d", moveVariable, target.Process.Pid))
	leader.Start(t)
	member, group := hear[int](t, leader), findGroup(t, leader.Process.Pid)
	found := group.Judge(me)
	requireLife(t, process.Alive, found)
	require.Contains(t, found.Why, fmt.Sprintf("process %d ", member))
	require.NoError(t, unix.Kill(member, unix.SIGKILL))
	require.NoError(t, leader.Wait(), "it ends once it has reaped its member")
	found = group.Judge(me)
	requireLife(t, process.Gone, found)
	require.Contains(t, found.Why, "no longer exists")
}

// For kill(2), -1 means every process and 0 our own group.
func TestNumberThatIsNoGroup(t *testing.T) {
	me := self(t)
	for _, pgid := range []int{1, 0, -1, -me.PID, math.MinInt32} {
		group := process.Group{Boot: me.Boot, Namespace: me.Namespace, PGID: pgid}
		requireLife(t, process.Unknown, group.Judge(me))
		_, err := process.FindGroup(pgid)
		require.ErrorIs(t, err, process.ErrNotFound)
	}
}

func TestGroupAsJSON(t *testing.T) {
	text, err := json.Marshal(process.Group{Host: "h", Machine: "m", Boot: "b", Namespace: "n", PGID: 7, Start: 9})
	require.NoError(t, err)
	require.JSONEq(t, `{"host":"h","machine":"m","boot":"b","pidns":"n","pgid":7,"start":9}`, string(text))
}

// A group without a start time may be any group with that number: nothing proves an end.
func TestGroupWithoutAStart(t *testing.T) {
	me, leader := self(t), groupOf(t, "sit")
	group := findGroup(t, leader.Process.Pid)
	group.Start = 0
	requireLife(t, process.Alive, group.Judge(me))
	leader.End()
	requireLife(t, process.Gone, group.Judge(me))

	group.PGID = 2
	require.NotEqual(t, process.Unknown, group.Judge(me).Life, "the first number that a job's group can have")
}
