package fslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/fslock"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
	"github.com/multilock/go/multilock/vfs/faultfs"
)

const (
	// sweptName is the lock that all sweeps use.
	sweptName = "lock"
	// sweptTTL is short, so that a missing heartbeat soon shows, and sweptBeat long enough that a busy
	// machine does not change the numbers of the operations much.
	sweptTTL  = time.Second
	sweptBeat = 200 * time.Millisecond
	// sweptTenure is for how long a lock is valid after a heartbeat: the library's rule, which a Lease
	// leaves to its user.
	sweptTenure = sweptTTL - sweptTTL/5
	// sweptWindow is for how long a missing heartbeat is watched.
	sweptWindow = sweptBeat * 3 / 2
)

// sharedFS is the file system as if other kernels used it, too, so that the sweeps run through the calls
// that only those need.
func sharedFS() *faultfs.FS {
	fs := faultfs.New(vfs.OS{}, nil)
	fs.Describe(vfs.FileSystem{Type: "test", NFS: true})
	return fs
}

// player plays one scene of a sweep, in this process or in another.
type player struct {
	scene  scene
	faulty *faultfs.FS
	src    *fslock.Source // the source whose operations are swept
	plain  *fslock.Source // the same place without faults
	self   process.Identity

	rival    source.Contender
	lease    source.Lease
	observer source.Observer
	seen     source.Observation
	number   uint64
	swept    []source.Leftover
	event    source.Event
	empty    bool
	beliefs  []belief
	before   string // the token of the earlier result
	list     string // the manifest that was returned
	learned  source.Result
	claim    string // what was reported as done
}

func newPlayer(base string, s scene) (*player, error) {
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	p := &player{scene: s, faulty: sharedFS(), self: self}
	p.src, err = fslock.Open(fslock.Options{Base: base, FS: p.faulty, Self: self, LegacyPeers: s.legacy})
	if err != nil {
		return nil, err
	}
	p.plain, err = fslock.Open(fslock.Options{Base: base, FS: sharedFS(), Self: self, LegacyPeers: s.legacy})
	return p, err
}

// end closes whatever is open, without releasing anything.
func (p *player) end() error {
	var err error
	if p.lease != nil {
		err = p.lease.Close()
	}
	if p.rival != nil {
		err = errors.Join(err, p.rival.Close())
	}
	if p.observer != nil {
		err = errors.Join(err, p.observer.Close())
	}
	return errors.Join(err, p.src.Close(), p.plain.Close())
}

func sweptClaim() source.Claim { return source.Claim{TTL: sweptTTL, Heartbeat: sweptBeat} }

// belief means that, from one time until another, the player considers itself the holder. Both are
// CLOCK_BOOTTIME. The next belief replaces it.
type belief struct {
	What     string
	At, Till time.Duration
}

func (b belief) String() string { return fmt.Sprintf("%s: from %s until %s", b.What, b.At, b.Till) }

// sinceBoot is CLOCK_BOOTTIME, which all processes of a host share.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// believe records the validity that follows from a heartbeat at good.
func (p *player) believe(what string, good boottime.Instant) {
	now := sinceBoot()
	p.beliefs = append(p.beliefs, belief{what, now, now + sweptTenure - good.Elapsed()})
}

// doubt ends the belief.
func (p *player) doubt(what string) {
	p.beliefs = append(p.beliefs, belief{What: what, At: sinceBoot()})
}

// compete is what the core does for TryAcquire, without the keeper.
func (p *player) compete(src *fslock.Source, claim source.Claim) error {
	c, err := src.Contend(context.Background(), sweptName, claim, source.StalePolicy{})
	if err != nil {
		return err
	}
	lease, err := insist(c)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	p.lease = lease
	p.believe("acquired", lease.Since())
	return c.Close()
}

// insist tries until it finds a live holder, or gets an error. The sweeps make their own host so busy that
// the lock may be acquired too late for its short TTL; and their processes come and go so fast that the
// search for a dead holder's job fails, and the TTL has to expire. So it does if another program starts a
// process meanwhile whose environment cannot be read.
func insist(c source.Contender) (source.Lease, error) {
	busy := false
	for range 1000 {
		lease, err := c.Try(context.Background())
		if err != nil && strings.Contains(err.Error(), "took longer than the TTL allows") && !errors.Is(err, source.ErrUnsure) {
			continue // released; in doubt it may still be there, and ours
		}
		if !errors.Is(err, source.ErrHeld) {
			return lease, err
		}
		seen, err := c.Look(context.Background())
		if err != nil {
			return nil, err
		}
		switch seen.State {
		case source.StateHeld:
			busy = busy || strings.Contains(seen.Why, "faster than one can look for its job") || strings.Contains(seen.Why, "which may not be looked into")
			if !busy {
				return nil, &multilock.HeldError{Name: sweptName, Observation: seen}
			}
			time.Sleep(sweptTTL / 30)
		case source.StateSuspect: // it is watched until that is clear: after a stall the watch starts over
			time.Sleep(sweptTTL / 30)
		case source.StateDead:
			if err := c.Break(context.Background()); err != nil {
				return nil, err
			}
		case source.StateFree:
		}
	}
	return nil, errors.New("it is free at every look and held at every attempt")
}

func (p *player) renew() error {
	start := boottime.Now()
	err := p.lease.Renew(context.Background())
	switch {
	case err == nil:
		p.believe("renewed", start)
	case errors.Is(err, source.ErrLost):
		p.doubt("lost at the renewal")
	}
	return err
}

func (p *player) fence() (err error) {
	start := boottime.Now()
	p.number, err = p.lease.Fence(context.Background())
	switch {
	case err == nil:
		p.believe("fenced", start)
	case errors.Is(err, source.ErrLost):
		p.doubt("lost at the fence")
	}
	return err
}

func (p *player) release() error {
	p.doubt("released")
	return p.lease.Release(context.Background())
}

// ownGroup is the process group of the player, which is its job.
func (p *player) mark() error {
	group, err := process.FindGroup(syscall.Getpgrp())
	if err != nil {
		return err
	}
	return p.lease.MarkJob(context.Background(), group)
}

// markAgain records one more job, and that of mark.
func (p *player) markAgain() error {
	group, err := process.FindGroup(syscall.Getpgrp())
	if err != nil {
		return err
	}
	return p.lease.MarkJob(context.Background(), someJob(p.self), group)
}
