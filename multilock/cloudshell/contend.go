package cloudshell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// contender is one standing attempt at a lock.
type contender struct {
	observer
	claim source.Claim
}

// Contend implements source.Source.
func (s *Source) Contend(ctx context.Context, name string, claim source.Claim, patience source.Patience) (source.Contender, error) {
	if err := s.CheckName(name); err != nil {
		return nil, err
	}
	plain, err := s.plain(ctx)
	if err != nil {
		return nil, err
	}
	claim = claim.By(s.opt.Self)
	c := contender{observer: s.newObserver(name, patience), claim: claim}
	if plain {
		return &plainContender{c}, nil
	}
	return &c, nil
}

// Wake implements source.Contender: this source hears nothing.
func (c *contender) Wake() <-chan struct{} { return nil }

// Try implements source.Contender. A lock that is held costs one listing. A free
// one is taken in two steps: the register first, which keeps out everybody who uses
// it, and then the service that scripts know.
func (c *contender) Try(ctx context.Context) (source.Lease, error) {
	found, err := c.list(ctx)
	if err != nil {
		return nil, opError("look", c.Name, err)
	}
	if c.src.read(found.view).state != freeHere {
		c.recent = found
		return nil, source.ErrHeld
	}
	// From here on the requests are seen through whatever becomes of ctx.
	ctx = context.WithoutCancel(ctx)
	l, v, err := c.src.takeTurn(ctx, c.base, c.Name, c.claim, found.view.top())
	if err != nil {
		return nil, err
	}
	if err := l.place(ctx, v); err != nil {
		return nil, l.giveBack(ctx, err)
	}
	l.tidy(ctx, v)
	l.Holding = remote.NewHolding(l.Record(), l.sign)
	return l, nil
}

// takeTurn takes the register, whose state is top. With ErrHeld somebody else was
// faster, and the view shows who.
func (s *Source) takeTurn(ctx context.Context, base, name string, claim source.Claim, top turn) (*lease, *view, error) {
	token := newToken()
	l := &lease{tenure: newTenure(s, base, source.Record{Token: token, Claim: claim}, boottime.Now()), number: top.number, taken: s.now(ctx)}
	if l.taken.IsZero() {
		l.taken = time.Now()
	}
	if top.brand == s.brand {
		l.result = top.result
	}
	text := l.value(ctx, l.result)
	if err := l.readBack(name, text); err != nil {
		return nil, nil, err
	}
	l.sign = boottime.Now()
	v, err := s.advance(ctx, base, top.number, text)
	switch {
	case err == nil:
		l.number = v.top().number
		return l, v, nil
	case errors.Is(err, errTaken):
		return nil, v, source.ErrHeld
	case errors.Is(err, errNoOwner):
		_ = s.remove(ctx, turnAlias(base, top.number+1)) // it was ours: the server said so
	case errors.Is(err, source.ErrUnsure):
		return nil, nil, l.withdraw(ctx, err)
	}
	return nil, nil, opError("take the register", name, err)
}

// readBack makes the record what others can read of it: it may have been cut.
func (l *lease) readBack(name, text string) error {
	t := newTurn(1, text)
	if t.why != "" {
		return opError("write the record", name, errors.New(t.why))
	}
	t.held.record.Name = name
	l.Holding = remote.NewHolding(t.held.record, l.sign)
	return nil
}

// withdraw makes sure that a step whose outcome is in doubt is of no effect, by
// putting another one in its place: then it is refused, or below, whenever it is
// carried out.
func (l *lease) withdraw(ctx context.Context, cause error) error {
	v, err := l.leave(ctx, l.free())
	if err == nil || errors.Is(err, errTaken) && !l.ours(v.top()) {
		cause = notUnsure(cause)
	}
	return opError("take the register", l.Record().Name, cause)
}

// leave makes a last step, to a value of nobody's, also from a step of this lease's that
// was in doubt.
func (l *lease) leave(ctx context.Context, text string) (*view, error) {
	v, err := l.src.advance(ctx, l.base, l.number, text)
	if errors.Is(err, errTaken) && l.ours(v.top()) {
		l.adopt(v.top())
		v, err = l.src.advance(ctx, l.base, l.number, text)
	}
	return v, err
}

// notUnsure is an error that is not in doubt any more: not source.ErrUnsure.
func notUnsure(err error) error { return fmt.Errorf("the attempt was taken back: %s", err.Error()) }

// free is the value with which this lease leaves the register.
func (l *lease) free() string {
	return encodeValue(kindFree, []field{{keyNonce, newToken()}, {keyBrand, l.src.brand}, {keyResult, l.result}})
}

// fresh makes sure that the register is this lease's for long enough to make
// another request under it.
func (l *lease) fresh(ctx context.Context) error {
	if !l.doubt && l.sign.Elapsed() < l.Record().TTL/2 {
		return nil
	}
	_, err := l.step(ctx, l.result)
	return err
}

// place adds the service that scripts know. The view shows it as it was when the
// register was taken: one that is there then was left behind, or is a script's.
func (l *lease) place(ctx context.Context, v *view) error {
	var last error
	for range stepTries {
		if b := v.bare; l.holds(b) {
			return nil
		} else if b != nil {
			if !l.src.leftBehind(b) {
				return source.ErrHeld
			}
			if err := l.clear(ctx, v); err != nil {
				return err
			}
		}
		if err := l.fresh(ctx); err != nil {
			return err
		}
		last = l.src.add(ctx, l.base, l.value(ctx, l.result))
		if last == nil {
			return nil
		}
		if final(last) {
			return last
		}
		var err error
		if v, err = l.src.view(ctx, l.base); err != nil {
			last = err
			v = &view{}
			continue
		}
		if !l.ours(v.top()) {
			return errGone
		}
	}
	if aliasTaken(last) {
		return contradiction(last)
	}
	return last
}

func (l *lease) holds(b *bare) bool {
	return b != nil && b.why == "" && b.held.record.Token == l.Record().Token
}

// clear removes the service that scripts know, which v shows to be ours or left
// behind. The request does not outlast the lease: it is by alias, and would remove
// a successor's.
func (l *lease) clear(ctx context.Context, v *view) error {
	for range stepTries {
		if err := l.fresh(ctx); err != nil {
			return err
		}
		within, cancel := context.WithTimeout(ctx, max(l.Record().TTL-l.sign.Elapsed(), 0))
		removed := l.src.remove(within, l.base)
		cancel()
		if removed == nil {
			return nil
		}
		again, err := l.src.view(ctx, l.base)
		switch {
		case err != nil:
			return errors.Join(removed, err)
		case !l.ours(again.top()):
			return errGone
		case again.bare == nil || again.bare.text != v.bare.text:
			return nil // what was meant is gone
		case final(removed):
			return removed
		}
		v = again
	}
	return errors.New("the service that stands for the lock cannot be removed")
}

// giveBack frees the register after an acquisition that failed with cause.
func (l *lease) giveBack(ctx context.Context, cause error) error {
	if errors.Is(cause, errGone) {
		return source.ErrHeld // it took so long that somebody else has it now
	}
	if v, err := l.src.view(ctx, l.base); err == nil && l.ours(v.top()) && l.holds(v.bare) {
		_ = l.clear(ctx, v) // a request that seemed to have failed; the next holder removes it otherwise
	}
	if err := l.part(ctx); err != nil {
		return errors.Join(source.ErrUnsure, opError("take the lock", l.Record().Name, cause), opError("give the register back", l.Record().Name, err))
	}
	if errors.Is(cause, source.ErrHeld) {
		return source.ErrHeld
	}
	return opError("take the lock", l.Record().Name, cause)
}
