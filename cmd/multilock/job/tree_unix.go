//go:build unix

package job

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstPoll = time.Millisecond
	lastPoll  = 100 * time.Millisecond
	// killPatience is how long processes may take to die of SIGKILL. They need
	// microseconds, unless the kernel does not let them go.
	killPatience = 10 * time.Second
)

// tree is the set of the processes of one job.
type tree struct {
	pgid int
	mark string

	mu sync.Mutex
	// alive means that the command has not been reaped, which keeps its number,
	// and so the group's, from being used again.
	alive bool
	// owned means that the number of the group is the job's. Once the command
	// has been reaped that has to be shown by a known member.
	owned bool
	known map[int]uint64 // start time by pid of all that were ever seen
}

// member is a living process of the job.
type member struct {
	pid     int
	start   uint64
	inGroup bool
}

func newTree(pgid int, mark string) *tree {
	return &tree{pgid: pgid, mark: mark, alive: true, owned: true, known: map[int]uint64{}}
}

// reaped is called, under the lock, right after the command has been reaped. As
// a rule nobody else is in the group and one system call tells so. Otherwise
// those who are there are noted, to know the group by them later.
func (t *tree) reaped() {
	t.alive = false
	if unix.Kill(-t.pgid, 0) == unix.ESRCH {
		t.owned = false
		return
	}
	t.scan()
	t.owned = false
}

// scanGroup is the scan where processes cannot be looked at: one member stands
// for the whole group, and zombies count until they are reaped.
func (t *tree) scanGroup() []member {
	if !t.owned {
		return nil
	}
	if unix.Kill(-t.pgid, 0) == unix.ESRCH {
		t.owned = false
		return nil
	}
	return []member{{pid: t.pgid, inGroup: true}}
}

// signalGroup signals the members of the group while the command exists.
func (t *tree) signalGroup(sig syscall.Signal) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.alive {
		return os.ErrProcessDone
	}
	return unix.Kill(-t.pgid, sig)
}

// send sends the signals to everybody who lives, and returns those.
func (t *tree) send(signals ...syscall.Signal) []member {
	t.mu.Lock()
	defer t.mu.Unlock()
	living := t.scan()
	for _, sig := range signals {
		if t.owned {
			// One call for the whole group also gets those that are being
			// forked at this moment.
			_ = unix.Kill(-t.pgid, sig)
		}
		for _, m := range living {
			if !m.inGroup {
				_ = m.signal(sig) // gone, or not ours to signal: the next scan tells
			}
		}
	}
	return living
}

func (t *tree) living() []member {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.scan()
}

// end ends all processes: SIGTERM, and SIGCONT because a stopped process cannot
// act on that; SIGKILL to those that live after the grace or when ctx is done.
func (t *tree) end(ctx context.Context, grace time.Duration) error {
	if len(t.send(syscall.SIGTERM, syscall.SIGCONT)) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if len(poll(ctx, t.living)) == 0 {
		return nil
	}
	return t.kill()
}

// kill sends SIGKILL until nobody is left: who is forked between a look and the
// signal is caught by the next round.
func (t *tree) kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), killPatience)
	defer cancel()
	left := poll(ctx, func() []member { return t.send(syscall.SIGKILL) })
	if len(left) == 0 {
		return nil
	}
	lingering := &LingeringError{}
	for _, m := range left {
		lingering.PIDs = append(lingering.PIDs, m.pid)
	}
	return lingering
}

// poll looks until nobody is left or ctx is done, and returns who is. Processes
// that are not our children can be waited for in no other way that works on
// every kernel.
func poll(ctx context.Context, look func() []member) []member {
	for wait := firstPoll; ; wait = min(2*wait, lastPoll) {
		left := look()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(wait):
		}
	}
}
