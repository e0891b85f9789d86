package cloudshell

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
)

// Source is the locks of one group in one reservation, and the results of the jobs
// that ran under them.
type Source struct {
	opt    Options
	client *client
	prefix string // of the group's aliases
	brand  string // of the reservation
	clock  source.Clock
	// clockless is when the server did not tell the time, zero if it did; guarded by clock.
	clockless boottime.Instant

	mu     sync.Mutex
	mode   mode
	unseen bool // the server shows this user no such model
}

// mode says whether the model has owners, as far as that was asked.
type mode int

const (
	unknownMode mode = iota
	ownedMode
	plainMode
)

var (
	_ source.Source      = (*Source)(nil)
	_ source.Timekeeper  = (*Source)(nil)
	_ source.NameChecker = (*Source)(nil)
)

// Open prepares to use the locks of a reservation. It asks the server nothing: the
// first request logs on. The error is source.ErrInvalid for options that cannot be.
func Open(opt Options) (*Source, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	c, err := newClient(opt)
	if err != nil {
		return nil, err
	}
	s := &Source{opt: opt, client: c, prefix: prefixOf(opt.Group), brand: brand(opt.Reservation)}
	if opt.Group != "" {
		if err := s.checkName("lock group", "x"); err != nil {
			return nil, invalid("lock group", opt.Group, fmt.Sprintf("is too long; %d characters fit", maxAlias))
		}
	}
	return s, nil
}

// Close ends the connections. Locks that were acquired through the source stay
// held, and can still be renewed and released. The session is left to end by
// itself: to log off may end a token that others use.
func (s *Source) Close() error {
	s.client.close()
	return nil
}

// Self is who the calling process is.
func (s *Source) Self() process.Identity { return s.opt.Self }

// Pace implements source.Paced.
func (s *Source) Pace() (least, most time.Duration) { return s.opt.Pause.Least, s.opt.Pause.Most }

// Ready logs on and looks at the service model, once; the first attempt at a lock does
// that, too. From then on Promises has all that can be relied on here.
func (s *Source) Ready(ctx context.Context) error {
	_, err := s.plain(ctx)
	return err
}

// known is what was found out about the model.
func (s *Source) known() mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode
}

// plain says whether locks have no owners here. The server is asked once.
func (s *Source) plain(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mode == unknownMode {
		owned, err := s.hasOwners(ctx)
		if err != nil {
			return false, opError("look at the service model", "", err)
		}
		if s.mode = plainMode; owned {
			s.mode = ownedMode
		}
	}
	return s.mode == plainMode, nil
}

// Names implements source.Source: one listing.
func (s *Source) Names(ctx context.Context) ([]string, error) {
	views, err := s.views(ctx)
	if err != nil {
		return nil, opError("list the locks", "", err)
	}
	var names []string
	for base, v := range views {
		name, ok := s.nameOf(base)
		if ok && s.isLock(base, v) && s.read(v).state != freeHere {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// isLock says whether an alias is a lock's: it has a register, an owner of ours, or
// is a service of the locks' model, or the one that all scripts mean.
func (s *Source) isLock(base string, v *view) bool {
	return len(v.turns) > 0 || v.bare != nil && (v.bare.why == "" || v.bare.model == s.opt.Model || base == DefaultName)
}

// standing is what a view says about a lock.
type standing struct {
	state  standingState
	record source.Record
	held   held
	// key changes whenever the holder gives a sign of life, or is another one.
	key string
	why string
}

type standingState int

const (
	freeHere    standingState = iota
	heldByTurn                // somebody has the register
	heldByOwner               // an owner of ours is there, and no register
	heldByOther               // by somebody who gives no signs of life
)

// read says who holds a lock. The register decides; without one, or when it is
// free, the service that scripts know does, unless it is only what a holder left
// whose turn has ended, or what came with a blueprint.
func (s *Source) read(v *view) standing {
	top := v.top()
	switch {
	case top.number > 0 && top.why == "" && top.brand != s.brand:
		// of another reservation, from a blueprint: nobody here
	case top.kind == kindHeld && top.why == "":
		return standing{state: heldByTurn, record: top.held.record, held: top.held, key: fmt.Sprint(top.number, " ", top.text)}
	case top.number > 0 && (top.why != "" || top.kind != kindFree):
		return standing{state: heldByOther, key: fmt.Sprint(top.number, " ", top.text), why: fmt.Sprintf("turn %d cannot be understood: %s", top.number, top.why)}
	}
	switch b := v.bare; {
	case b == nil:
		return standing{}
	case b.why != "":
		return standing{state: heldByOther, key: b.text, why: s.foreignWhy(b)}
	case b.held.brand != s.brand, top.number > 0 && top.brand == s.brand:
		return standing{} // left behind
	default:
		return standing{state: heldByOwner, record: b.held.record, held: b.held, key: b.text}
	}
}

// foreignWhy describes a lock that is not held by an owner of ours.
func (s *Source) foreignWhy(b *bare) string {
	if s.known() == plainMode {
		return "it is there, and nobody can tell whose it is: " + s.noOwner()
	}
	if b.text == "" {
		return "it was taken by a script that names no owner"
	}
	return fmt.Sprintf("it was taken by a script, with the owner %q", source.Printable(source.Shorten(b.text, source.MaxUser)))
}

// leftBehind says whether the service that scripts know is there though nobody
// holds it. It is for the holder of the register: nobody else may remove it.
func (s *Source) leftBehind(b *bare) bool { return b != nil && b.why == "" }

var _ source.Group = (*Source)(nil)

// Vacant implements source.Group: one listing, past the server's cache. What a
// crash left behind counts as nothing.
func (s *Source) Vacant(ctx context.Context) (bool, error) {
	names, err := s.Names(ctx)
	return err == nil && len(names) == 0, err
}

// Wake implements source.Group: this source hears nothing.
func (s *Source) Wake() (news <-chan struct{}, stop func()) { return nil, func() {} }

// Tidy implements source.Group. Nothing that a crash leaves keeps a group from
// being vacant: the next holder removes it.
func (s *Source) Tidy(context.Context, string) error { return nil }
