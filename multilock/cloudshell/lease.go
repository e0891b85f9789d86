package cloudshell

import (
	"cmp"
	"context"
	"errors"

	"github.com/multilock/go/internal/bounded"
	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a held lock: the top of its register, and the service that scripts know. Operations are
// serialised, and not cancelled half-way: each request has its own time limit. So the outcome of an
// operation is known, or known to be unknown.
type lease struct {
	*remote.Holding
	src     *Source
	base    string
	working bounded.Turn
	sign    boottime.Instant // a moment before the last confirmed heartbeat
	number  uint64           // the last known turn of this lease
	leaving bool             // Release may have removed the service that scripts know
}

var (
	// errGone means that another client has taken the register.
	errGone = errors.New("the lock was broken: its register has passed on")
	// errMissing means that the service which scripts know was removed, or is not this lease's.
	errMissing = errors.New("the service that stands for the lock was removed or replaced: scripts may have taken it for free")
)

// during runs an operation after the previous one.
func (l *lease) during(ctx context.Context, op string, operate func(context.Context) error) error {
	l.working.Lock()
	defer l.working.Unlock()
	if err := l.Ended(); err != nil {
		return err
	}
	err := operate(context.WithoutCancel(ctx))
	if errors.Is(err, errGone) || errors.Is(err, errMissing) || errors.Is(err, errEnded) {
		return &source.LostError{Name: l.Record().Name, Silence: l.sign.Elapsed(), Err: err}
	}
	return l.src.Named(context.WithoutCancel(ctx), op, l.Record().Name, err)
}

// Renew implements source.Lease.
func (l *lease) Renew(ctx context.Context) error {
	_, err := l.Fence(ctx)
	return err
}

// Fence implements source.Lease: the register takes a step, which succeeds only while it is this
// lease's, and which is visible to other processes. The number is that of the new turn.
func (l *lease) Fence(ctx context.Context) (number uint64, err error) {
	err = l.during(ctx, "renew", func(ctx context.Context) error {
		v, err := l.beat(ctx)
		if err != nil {
			return err
		}
		if !l.has(v.bare) {
			return errMissing
		}
		l.tidy(ctx, v)
		number = l.number
		return nil
	})
	return number, err
}

// MarkJob implements source.Lease. It is not supported, because the owner's attribute has no room
// for it.
func (l *lease) MarkJob(context.Context, ...process.Group) error { return source.ErrUnsupported }

// Release implements source.Lease. It first removes the service that scripts know, if a listing
// shows that it is this lease's, and then frees the register.
func (l *lease) Release(ctx context.Context) error {
	err := l.during(ctx, "release", l.release)
	if err == nil || errors.Is(err, source.ErrLost) {
		_ = l.End(cmp.Or(err, source.ErrReleased))
	}
	return err
}

func (l *lease) release(ctx context.Context) error {
	v, err := l.look(ctx)
	if errors.Is(err, errGone) && l.leaving {
		return nil // an earlier call has freed it, and the answer was lost
	}
	if err == nil && l.has(v.bare) {
		err = l.clear(ctx, v)
	}
	if err != nil {
		return err
	}
	if err = l.freeRegister(ctx); err == nil && !l.leaving {
		err = errMissing
	}
	return err
}

// value returns the register's value while this lease has it.
func (l *lease) value(ctx context.Context) string {
	_, now := l.src.around(ctx, source.ClockCarried)
	return held{record: l.Record(), reservation: l.src.digest, sign: now, taken: l.Record().Prepared}.encode()
}

// free returns the value of the register after a release.
func (l *lease) free() string {
	return encodeValue(kindFree, fields{keyToken: newToken(), keyReservation: l.src.digest})
}

// step gives the register its next value. The error is errGone, with the view, if the register is
// no longer this lease's.
func (l *lease) step(ctx context.Context, text string) (*view, error) {
	for range stepTries {
		v, err := l.src.advance(ctx, l.base, l.number, text)
		switch {
		case err == nil:
			l.number = v.top().number
			return v, nil
		case !errors.Is(err, errTaken):
			return nil, err
		case !l.ours(v.top()):
			return v, errGone
		}
		l.number = v.top().number // an earlier step of this lease, whose answer was lost
	}
	return nil, errors.New("the lock's register does not hold still")
}

// beat sends a heartbeat.
func (l *lease) beat(ctx context.Context) (*view, error) {
	text, start := l.value(ctx), boottime.Now()
	v, err := l.step(ctx, text)
	if err == nil {
		l.sign = start
	}
	return v, err
}

// fresh sends a heartbeat unless enough of the TTL is left for another request.
func (l *lease) fresh(ctx context.Context) error {
	if l.sign.Elapsed() < l.Record().TTL/2 {
		return nil
	}
	_, err := l.beat(ctx)
	return err
}

// look returns a listing; the error is errGone if the register is no longer this lease's.
func (l *lease) look(ctx context.Context) (*view, error) {
	v, err := l.src.view(ctx, l.base)
	if err != nil || !l.ours(v.top()) {
		return nil, cmp.Or(err, errGone)
	}
	l.number = v.top().number
	return v, nil
}

func (l *lease) ours(t turn) bool {
	return t.kind == kindHeld && t.reservation == l.src.digest && t.held.record.Token == l.Record().Token
}

// has reports whether a service that scripts know stands for this lease.
func (l *lease) has(bare *turn) bool { return bare != nil && l.ours(*bare) }

// place adds the service that scripts know. The view shows that service as of when the register was
// taken: it may be this lease's, left behind, or a script's.
func (l *lease) place(ctx context.Context, v *view) error {
	var added error
	for range stepTries {
		switch b := v.bare; {
		case l.has(b):
			return nil
		case b != nil && b.why != "":
			return source.ErrHeld
		case b != nil:
			if err := l.clear(ctx, v); err != nil {
				return err
			}
		}
		if err := l.fresh(ctx); err != nil {
			return err
		}
		if added = l.src.add(ctx, l.base, l.value(ctx)); added == nil || final(added) {
			return added
		}
		var err error
		if v, err = l.look(ctx); err != nil {
			return err
		}
	}
	return added
}

// clear removes the service that scripts know, which v shows to be this lease's, left behind or
// broken. The request is limited to the lease's TTL, because it removes by alias, and later would
// remove a successor's service.
func (l *lease) clear(ctx context.Context, v *view) (removed error) {
	bare := v.bare
	for range stepTries {
		if err := l.fresh(ctx); err != nil {
			return err
		}
		l.leaving = l.leaving || l.has(bare)
		within, cancel := context.WithTimeout(ctx, max(l.Record().TTL-l.sign.Elapsed(), 0))
		removed = l.src.remove(within, l.base)
		cancel()
		if removed == nil {
			return nil
		}
		v, err := l.look(ctx)
		switch {
		case err != nil:
			return err
		case v.bare == nil || v.bare.text != bare.text:
			return nil // that service is gone
		case final(removed):
			return removed
		}
	}
	return removed
}

// freeRegister frees the register. It succeeds as well if another client has taken it.
func (l *lease) freeRegister(ctx context.Context) error {
	own, text := l.number, l.free()
	if l.src.add(ctx, turnAlias(l.base, own+1), text) != nil {
		if _, err := l.step(ctx, text); err != nil && !errors.Is(err, errGone) {
			return err
		}
	}
	_ = l.src.remove(ctx, turnAlias(l.base, own)) // otherwise the next holder removes it
	return nil
}

// undo frees the register after an acquisition that failed with cause.
func (l *lease) undo(ctx context.Context, cause error) error {
	if errors.Is(cause, errGone) {
		return source.ErrHeld // it took so long that another client has the lock now
	}
	if v, err := l.look(ctx); err == nil && l.has(v.bare) {
		_ = l.clear(ctx, v) // it was added though the request seemed to fail; if this fails, the next holder removes it
	}
	if err := l.freeRegister(ctx); err != nil {
		cause = errors.Join(source.ErrUnsure, cause, err)
	}
	return l.src.Named(ctx, "take the lock", l.Record().Name, cause)
}

// tidy removes the turns below the current one. They have no effect; the next holder removes what
// is left.
func (l *lease) tidy(ctx context.Context, v *view) {
	for _, t := range v.turns {
		if t.number < l.number && t.why == "" {
			_ = l.src.remove(ctx, turnAlias(l.base, t.number))
		}
	}
}
