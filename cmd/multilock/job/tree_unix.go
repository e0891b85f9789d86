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
	// killPatience is how long processes may take to die of SIGKILL. They need microseconds, unless
	// they hang in the kernel.
	killPatience = 10 * time.Second
)

// tree is the set of the processes of one job.
type tree struct {
	pgid int
	mark string

	mu sync.Mutex
	// alive means that the command has not been reaped, which reserves its number, and so the
	// group's.
	alive bool
	// owned means that the number of the group is the job's. Once the command has been reaped, a
	// known member must prove that.
	owned bool
	known map[int]uint64 // start times of all processes ever seen, by pid
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

// reaped is called, under the lock, right after the command has been reaped. Usually the group is
// empty, and one system call shows that. Otherwise it records the members, to recognise the group
// later.
func (t *tree) reaped() {
	t.alive = false
	if unix.Kill(-t.pgid, 0) == unix.ESRCH {
		t.owned = false
		return
	}
	t.scan()
	t.owned = false
}

// scanGroup is the scan for systems that cannot list processes: one member stands for the whole
// group, and zombies count until they are reaped.
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

// send sends the signals to all living members, and returns them.
func (t *tree) send(signals ...syscall.Signal) []member {
	t.mu.Lock()
	defer t.mu.Unlock()
	living := t.scan()
	for _, sig := range signals {
		if t.owned {
			// One call for the whole group also reaches processes that are just being forked.
			_ = unix.Kill(-t.pgid, sig)
		}
		for _, m := range living {
			if !m.inGroup {
				_ = m.signal(sig) // gone, or not permitted: the next scan shows which
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

// end ends all processes: SIGTERM, and SIGCONT because a stopped process cannot act on that;
// SIGKILL to those still alive after the grace or when ctx is done.
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

// kill sends SIGKILL until no process is left: the next round catches those that were forked between
// the scan and the signal.
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

// poll calls look until no process is left or ctx is done, and returns those that remain. On all
// kernels, polling is the only way to wait for processes that are not children.
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
