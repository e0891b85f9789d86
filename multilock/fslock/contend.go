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

// contender is one attempt at a lock. What it has staged it keeps, so that each
// further attempt is one rename and nothing else.
type contender struct {
	observer
	claim    source.Claim
	replaces bool
	staged   *staged
	inPlace  bool // a look found the staged lock in place: an earlier reply was lost
	// abandoned are the tokens of what was given up because it was not to be seen: where a
	// client remembers for long that a name is absent, it may be in place.
	abandoned []string
	denied    int // renames in a row that were forbidden, by nobody who could be seen
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

// maxLate is how often in a row a lock may come too late until that is told: each time it
// has taken most of its TTL.
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
				return nil, opError("give a first sign of life", c.name, err)
			}
		}
	}
	return nil, opError("rename", c.name, errors.New("the lock group does not hold still"))
}

var (
	// errLate says that a lock was in place, and had to be given back.
	errLate = errors.New("it comes too late, each time; use a longer ttl, or find out why the filesystem or this host is so slow")
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
		// What a rename left that was taken back, or what was reserved for one that
		// did not come about, is empty: nobody's lock, but in the way of a barrier.
		_ = group.Rmdir(c.name)
	}
	return lease, err
}

// place renames the staged lock to where it is the lock, unless another is there.
func (c *contender) place(group *shareddir.Handle) (source.Lease, error) {
	err := c.staged.parent.Rename(c.staged.token, group, c.name)
	if (notEmpty(err) || forbidden(err)) && !c.replaces && group.Rmdir(c.name) == nil {
		err = c.staged.parent.Rename(c.staged.token, group, c.name)
	}
	if notEmpty(err) {
		// A look notices if this was the repetition of a rename whose reply was lost.
		return nil, source.ErrHeld
	}
	return c.readBack(group, err)
}

// reserve makes the lock's directory first where Python peers contend: that is
// how they take a lock. The rename then lands on our own empty directory.
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
// A rename keeps the directory's time: what was staged looks as silent as it is old, and
// may look dead. So that time is the lock's first sign of life, whenever the rename was
// carried out. It is believed as any other is, and only as long: what a breaker saw
// before it was renewed cannot have told him that its holder is dead. Later than that he
// may be about to remove it, and no sign of life stops him any more.
func (c *contender) acquired(group *shareddir.Handle, dir vfs.Dir, found sign) (source.Lease, error) {
	st := c.staged
	c.staged = nil
	st.settle()
	l := c.src.newLease(c.name, st, c.claim, group, dir)
	l.found = found
	if !recent(l.src.clock.Elapsed(st.made), c.claim) {
		_ = dir.TouchFile(c.name + lockedSuffix) // when the lock was acquired, for people
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

// takeBack releases a lock that its owner does not believe in, for the given cause. What
// was lost is released, too: a server that was wrong about it is left no lock that nobody
// renews.
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

// fresh says whether the time that the staged directory got is so young that the lock
// needs no further sign of life.
func (c *contender) fresh(st *staged) bool { return recent(c.src.clock.Elapsed(st.sign), c.claim) }

// recent says whether a sign of life is younger than half a heartbeat.
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

// Look implements source.Observer. Finding its own lock in place it reports
// it as free: the next Try will verify and take it. One that was given up is removed: nobody
// holds it, and its time may have run out.
func (c *contender) Look(ctx context.Context) (source.Sighting, error) {
	seen, err := c.observer.Look(ctx)
	if err != nil || seen.State != source.StateFree {
		c.unseen = 0
	} else if c.unseen++; c.unseen%unseenEnough == 0 {
		c.src.stirGroup()
	}
	if err == nil && seen.State != source.StateFree && c.own(seen.Record.Token) {
		c.inPlace = true
		return source.Sighting{State: source.StateFree}, nil
	}
	if err == nil && seen.State != source.StateFree && slices.Contains(c.abandoned, seen.Record.Token) {
		if _, err := c.remove(); err == nil {
			return source.Sighting{State: source.StateFree}, nil
		}
	}
	return seen, err
}

// abandon takes back what is staged, and remembers it.
func (c *contender) abandon() error {
	err := c.staged.discard()
	c.abandoned = append(c.abandoned, c.staged.token)
	c.staged = nil
	return err
}

// unseenEnough is how often in a row a lock that is in the way of the attempts may be
// gone when one looks.
const unseenEnough = 5

// stirGroup changes the group's times. A lock that was released and taken within one
// step of the server's clock leaves the group as an NFS client knows it: one that looked
// in between remembers that the name is absent, for as long as nothing changes. It
// would never see that the holder died. A change by one client ends what the others
// remember.
func (s *Source) stirGroup() {
	if s.base.Kind.Local {
		return
	}
	_ = s.inParent(func(parent vfs.Dir) error { return parent.TouchFile(s.group) }) // it only helps
}

// Close takes back what is staged. An error says that a rename which is in doubt
// may still be carried out; the lock is free after its TTL then.
func (c *contender) Close() error {
	var err error
	if c.staged != nil {
		err = c.abandon()
	}
	c.waker.close()
	return errors.Join(err, c.observer.Close())
}
