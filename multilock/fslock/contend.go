package fslock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/multilock/go/multilock/fslock/internal/groupfiles"
	"github.com/multilock/go/multilock/shareddir"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/vfs"
)

// contender is one attempt at a lock. It keeps what it has staged, so that each further attempt is a single
// rename.
type contender struct {
	observer
	claim    source.Claim
	replaces bool
	staged   *staged
	inPlace  bool // a look found the staged lock in place: an earlier reply was lost
	// abandoned has the tokens of staged locks that were given up because a look did not find them. Such a
	// lock may be in place after all, where a client caches for long that a name is absent.
	abandoned []string
	denied    int // renames in a row that were forbidden although no look found a lock
	unseen    int // looks in a row that found no lock
	waker     *waker
}

// Contend implements source.Source.
func (s *Source) Contend(_ context.Context, name string, claim source.Claim, policy source.StalePolicy) (source.Contender, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	claim = claim.By(s.self)
	found, err := s.base.Traits()
	if err != nil {
		return nil, err
	}
	if err := found.Suits(claim, s.base.Path()); err != nil {
		return nil, err
	}
	st, err := s.stage(name, claim)
	if err != nil {
		return nil, err
	}
	c := &contender{claim: claim, replaces: found.Replaces, staged: st}
	c.observer = s.newObserver(name, policy)
	c.own = func(token string) bool { return c.staged != nil && token == c.staged.token }
	return c, nil
}

// Local implements source.Local.
func (c *contender) Local() bool { return c.src.Local() }

// maxLate is how many acquisitions in a row may come too late, each after most of its TTL, before Try
// fails.
const maxLate = 3

// Try implements source.Contender.
func (c *contender) Try(context.Context) (source.Lease, error) {
	late := 0
	for range shareddir.Rounds() {
		lease, err := c.attempt()
		switch {
		case errors.Is(err, groupfiles.ErrAgain):
		case !errors.Is(err, errLate):
			return lease, err
		default:
			if late++; late == maxLate {
				return nil, opError("send a first heartbeat", c.name, err)
			}
		}
	}
	return nil, opError("rename", c.name, errors.New("the lock group does not hold still"))
}

var (
	// errLate is the error of an acquired lock that had to be released at once.
	errLate = errors.New("each attempt took longer than the TTL allows; use a longer TTL, or find out why the filesystem or this host is so slow")
)

func (c *contender) attempt() (source.Lease, error) {
	if c.staged == nil {
		st, err := c.src.stage(c.name, c.claim)
		if err != nil {
			return nil, err
		}
		c.staged = st
	}
	group, err := c.src.makeGroup()
	if gone(err) {
		return nil, groupfiles.ErrAgain
	}
	if err != nil {
		return nil, c.src.groupError(err)
	}
	defer c.src.groupDir.Done(group)
	if c.inPlace {
		c.inPlace = false
		return c.readBack(group, nil)
	}
	c.staged.freshen(c.claim.TTL / 2)
	if err := c.reserve(group); err != nil {
		return nil, err
	}
	lease, err := c.place(group)
	if err != nil && !errors.Is(err, source.ErrHeld) {
		// What is left of a withdrawn rename, or of a reservation, is an empty directory. It is no lock,
		// but a barrier would wait for it.
		_ = group.Rmdir(c.name)
	}
	return lease, err
}

// place renames the staged lock into place, unless a lock is there.
func (c *contender) place(group *shareddir.Handle) (source.Lease, error) {
	err := c.staged.parent.Rename(c.staged.token, group, c.name)
	if (notEmpty(err) || forbidden(err)) && !c.replaces && group.Rmdir(c.name) == nil {
		err = c.staged.parent.Rename(c.staged.token, group, c.name)
	}
	if notEmpty(err) {
		// If this was a repeated rename whose first reply was lost, the next look finds our own lock.
		return nil, source.ErrHeld
	}
	return c.readBack(group, err)
}

// reserve first makes the lock's directory where Python peers contend, because a Python peer acquires the
// lock by that mkdir. The rename then replaces our own empty directory.
func (c *contender) reserve(group *shareddir.Handle) error {
	if !c.src.legacy {
		return nil
	}
	err := group.Mkdir(c.name, shareddir.DirMode)
	switch {
	case is(err, syscall.EEXIST):
		return source.ErrHeld
	case gone(err):
		c.src.groupDir.Drop(group)
		return groupfiles.ErrAgain
	case err != nil:
		return opError("mkdir", c.name, err)
	}
	return nil
}

// acquired turns the staged lock into a lease.
//
// A rename keeps the directory's time, so a lock that was staged long ago looks stale when it is placed.
// That time therefore counts as the lock's first heartbeat, whenever the rename was carried out, and it is
// valid for as long as any heartbeat: within that time no breaker can have concluded that the holder is
// dead. Later, a breaker may be about to remove the lock, and a new heartbeat does not stop it.
func (c *contender) acquired(group *shareddir.Handle, dir vfs.Dir, found sign) (source.Lease, error) {
	st := c.staged
	c.staged = nil
	st.settle()
	l := c.src.newLease(c.name, st, c.claim, group, dir)
	l.found = found
	if !recent(l.src.clock.Elapsed(st.made), c.claim) {
		_ = dir.TouchFile(c.name + lockedSuffix) // shows people when the lock was acquired
	}
	if c.fresh(st) {
		l.since = st.sign
		return l, nil
	}
	l.since = l.src.clock.Now()
	err := l.Renew(context.Background())
	if err == nil && l.src.clock.Elapsed(st.sign) >= c.claim.Tenure() {
		err = errLate
	}
	if err != nil {
		return nil, l.takeBack(err)
	}
	return l, nil
}

// takeBack releases a lock that the contender does not rely on, because of cause. It also releases a lock
// that was reported lost: if the server was wrong, no lock without a holder remains.
func (l *lease) takeBack(cause error) error {
	released := l.Release(context.Background())
	if released != nil && !errors.Is(released, source.ErrLost) {
		doubt := fmt.Errorf("%v, and then: %w", cause, released) //nolint:errorlint // why it was to be given back is no answer
		return errors.Join(source.ErrUnsure, opError("give the lock back", l.record.Name, doubt), l.Close())
	}
	if errors.Is(cause, source.ErrLost) {
		return groupfiles.ErrAgain
	}
	return cause
}

// fresh reports whether the staged directory's time is so recent that the lock needs no heartbeat yet.
func (c *contender) fresh(st *staged) bool { return recent(c.src.clock.Elapsed(st.sign), c.claim) }

// recent reports whether age is below half of the heartbeat interval.
func recent(age time.Duration, claim source.Claim) bool {
	beat := claim.Heartbeat
	if beat == 0 {
		beat = claim.TTL / 10
	}
	return age < beat/2
}

// Wake implements source.Contender.
func (c *contender) Wake() <-chan struct{} {
	if c.waker == nil {
		group, err := c.src.groupDir.Use()
		if err != nil {
			return nil
		}
		defer c.src.groupDir.Done(group)
		c.waker = c.src.notifier.subscribe(group, c.name)
	}
	return c.waker.channel()
}

// Look implements source.Observer. If it finds its own lock in place, it reports the lock as free: the next
// Try will verify and acquire it. It removes an abandoned lock of its own, which has no holder and may be
// past its TTL.
func (c *contender) Look(ctx context.Context) (source.Observation, error) {
	seen, err := c.observer.Look(ctx)
	if err != nil || seen.State != source.StateFree {
		c.unseen = 0
	} else if c.unseen++; c.unseen%unseenEnough == 0 {
		c.src.stirGroup()
	}
	if err == nil && seen.State != source.StateFree && c.own(seen.Record.Token) {
		c.inPlace = true
		return source.Observation{State: source.StateFree}, nil
	}
	if err == nil && seen.State != source.StateFree && slices.Contains(c.abandoned, seen.Record.Token) {
		if _, err := c.remove(); err == nil {
			return source.Observation{State: source.StateFree}, nil
		}
	}
	return seen, err
}

// abandon discards the staged lock and remembers its token.
func (c *contender) abandon() error {
	err := c.staged.discard()
	c.abandoned = append(c.abandoned, c.staged.token)
	c.staged = nil
	return err
}

// unseenEnough is how many looks in a row may find no lock, while attempts fail because of one, before
// stirGroup is called.
const unseenEnough = 5

// stirGroup changes the group's times. If a lock was released and acquired within one step of the server's
// clock, the group's times do not change, and an NFS client that looked in between caches that the name is
// absent until they do. It would never see that the holder died. A change by one client invalidates the
// caches of the others.
func (s *Source) stirGroup() {
	if s.base.Kind.Local {
		return
	}
	_ = s.inParent(func(parent vfs.Dir) error { return parent.TouchFile(s.group) }) // best effort
}

// Close discards what is staged. An error means that a rename in doubt may still be carried out; in that
// case the lock is free after its TTL.
func (c *contender) Close() error {
	var err error
	if c.staged != nil {
		err = c.abandon()
	}
	c.waker.close()
	return errors.Join(err, c.observer.Close())
}
