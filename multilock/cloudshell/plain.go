package cloudshell

import (
	"context"
	"errors"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// A model without the owner's attribute leaves nothing but the convention itself:
// the service is there or not. Nobody can tell whose it is, so a lost answer to an
// attempt is a question for people, and nothing is ever broken but by force.

// plainContender is an attempt at a lock without an owner.
type plainContender struct{ contender }

// errWhose says that nobody can tell whose lock it is.
var errWhose = errors.New("the answer was lost, and a lock without an owner does not tell whose it is; " +
	"if nobody works in this reservation, clear it with break --force, or by deleting the service in the portal")

// Try implements source.Contender.
func (c *plainContender) Try(ctx context.Context) (source.Lease, error) {
	ctx = context.WithoutCancel(ctx)
	token := newToken()
	start := boottime.Now()
	for try := 1; ; try++ {
		added := c.src.add(ctx, c.base, "")
		switch {
		case added == nil:
			return c.lease(token, start), nil
		case aliasTaken(added):
			return nil, source.ErrHeld
		case inDoubt(added):
			return nil, errors.Join(source.ErrUnsure, opError("take the lock", c.Name, errors.Join(errWhose, added)))
		case !apiFailure(added):
			return nil, opError("take the lock", c.Name, added)
		}
		v, err := c.src.view(ctx, c.base)
		switch {
		case err != nil:
			return nil, opError("take the lock", c.Name, errors.Join(added, err))
		case c.src.read(v).state != freeHere:
			return nil, source.ErrHeld
		case try > 1:
			return nil, opError("take the lock", c.Name, added)
		}
	}
}

func (c *plainContender) lease(token string, start boottime.Instant) *plainLease {
	record := source.Record{Name: c.Name, Token: token, Claim: c.claim}
	return &plainLease{tenure: newTenure(c.src, c.base, record, start)}
}

// plainLease is a lock without an owner. Its token is known to this process only.
type plainLease struct {
	*tenure
	exposed  bool // the service was gone, or somebody else's
	removing bool // a removal is in doubt
}

// Renew implements source.Lease: it sees whether the service is there. That it is
// somebody else's by now it cannot see.
func (l *plainLease) Renew(ctx context.Context) error {
	return l.during(ctx, func(ctx context.Context) error { return l.explain("renew", l.present(ctx)) })
}

func (l *plainLease) present(ctx context.Context) error {
	start := boottime.Now()
	v, err := l.src.view(ctx, l.base)
	if err != nil {
		return err
	}
	if v.bare == nil || v.bare.text != "" {
		l.exposed = true
	}
	if l.exposed {
		return errMissing
	}
	l.sign = start
	return nil
}

// Fence implements source.Lease: there is no register.
func (l *plainLease) Fence(context.Context) (uint64, error) { return 0, source.ErrUnsupported }

// Release implements source.Lease. A removal whose answer was lost is not
// repeated: the service that is there may be the next holder's.
func (l *plainLease) Release(ctx context.Context) error { return l.released(ctx, l.release) }

func (l *plainLease) release(ctx context.Context) error {
	err := l.present(ctx)
	switch {
	case errors.Is(err, errMissing) && l.removing:
		return nil // it was carried out
	case err != nil:
		return l.explain("release", err)
	case l.removing:
		return opError("release", l.Record().Name, errWhose)
	}
	removed := l.src.remove(ctx, l.base)
	if removed == nil {
		return nil
	}
	l.removing = inDoubt(removed)
	v, err := l.src.view(ctx, l.base)
	if err == nil && v.bare == nil {
		return nil
	}
	if l.removing {
		removed = errors.Join(removed, errWhose)
	}
	return opError("release", l.Record().Name, removed)
}
