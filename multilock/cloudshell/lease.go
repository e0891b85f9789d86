package cloudshell

import (
	"context"
	"errors"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/process"
	"github.com/multilock/go/multilock/source"
	"github.com/multilock/go/multilock/source/remote"
)

// lease is a lock that is held: the top of its register, and the service that
// scripts know. What no mutex guards belongs to the operation at work.
type lease struct {
	*tenure
	taken   time.Time
	number  uint64 // the last turn that is known to be ours
	result  string // the id of the result that the register names
	doubt   bool   // a later turn may be ours as well
	exposed bool   // the service that scripts know was gone, or somebody else's
	leaving bool   // Release may have removed that service
	cleared bool   // it has
	parting string // the value with which Release ends the turn
}

var _ source.Lease = (*lease)(nil)

// Renew implements source.Lease: the register takes a step, which succeeds only
// while it is this lease's, and everybody can see it.
func (l *lease) Renew(ctx context.Context) error { return l.during(ctx, l.renew) }

func (l *lease) renew(ctx context.Context) error {
	v, err := l.step(ctx, l.result)
	if err == nil {
		err = l.guarded(v)
	}
	if err != nil {
		return l.explain("renew", err)
	}
	l.tidy(ctx, v)
	return nil
}

// Fence implements source.Lease: the number of a new turn. Numbers of a register
// only grow.
func (l *lease) Fence(ctx context.Context) (number uint64, err error) {
	err = l.during(ctx, func(ctx context.Context) error {
		err := l.renew(ctx)
		if err == nil {
			number = l.number
		}
		return err
	})
	return number, err
}

// errMissing says that the service which scripts know is not there, or not ours.
var errMissing = errors.New("the service that stands for the lock was removed, or replaced by somebody else's: scripts may have taken it for free")

// guarded says whether the lock still keeps scripts out. The register keeps the
// others out in any case.
func (l *lease) guarded(v *view) error {
	present := l.holds(v.bare)
	l.exposed = l.exposed || !present && !l.leaving
	if l.exposed || !present {
		return errMissing
	}
	return nil
}

// value is what the register says while this lease has it.
func (l *lease) value(ctx context.Context, result string) string {
	return held{record: l.Record(), brand: l.src.brand, result: result, sign: l.src.now(ctx), taken: l.taken}.encode()
}

// errGone says that the register has passed on.
var errGone = errors.New("the lock was broken: its register has passed on to somebody else")

// step makes the register's next turn this lease's, with a result. The error is
// errGone if it is not this lease's any more.
func (l *lease) step(ctx context.Context, result string) (*view, error) {
	for range stepTries {
		if err := l.resolve(ctx); err != nil {
			return nil, err
		}
		start := boottime.Now()
		v, err := l.src.advance(ctx, l.base, l.number, l.value(ctx, result))
		switch {
		case err == nil:
			l.number, l.result, l.sign = v.top().number, result, start
			return v, nil
		case errors.Is(err, errTaken) && l.ours(v.top()):
			l.adopt(v.top()) // an earlier step of ours, whose answer was lost
		case errors.Is(err, errTaken):
			return v, errGone
		default:
			l.doubt = l.doubt || errors.Is(err, source.ErrUnsure)
			return nil, err
		}
	}
	return nil, errors.New("the lock's register does not hold still")
}

// resolve learns which turn is ours after a step that is in doubt.
func (l *lease) resolve(ctx context.Context) error {
	if !l.doubt {
		return nil
	}
	v, err := l.look(ctx)
	if err == nil {
		l.adopt(v.top())
	}
	return err
}

// look is a listing; the error is errGone if the register is not this lease's any more.
func (l *lease) look(ctx context.Context) (*view, error) {
	v, err := l.src.view(ctx, l.base)
	if err == nil && !l.ours(v.top()) {
		err = errGone
	}
	return v, err
}

func (l *lease) ours(t turn) bool {
	return t.kind == kindHeld && t.why == "" && t.brand == l.src.brand && t.held.record.Token == l.Record().Token
}

// adopt takes a turn of ours for the present one. That one may have been made long
// ago: it is no sign of life at this moment.
func (l *lease) adopt(t turn) { l.number, l.result, l.doubt = t.number, t.result, false }

// tidy removes what is below the present state. It is in nobody's way: what cannot
// be removed, the next holder removes.
func (l *lease) tidy(ctx context.Context, v *view) {
	for _, t := range v.turns {
		if t.number < l.number && t.why == "" {
			_ = l.src.remove(ctx, turnAlias(l.base, t.number))
		}
	}
	for id, pieces := range v.pieces {
		if id == l.result {
			continue
		}
		for piece, text := range pieces {
			if isPiece(text) {
				_ = l.src.remove(ctx, pieceAlias(l.base, id, piece))
			}
		}
	}
}

// tenure is what all kinds of leases have in common: one operation at a time, and an end.
type tenure struct {
	*remote.Holding
	src  *Source
	base string
	sign boottime.Instant // before the last confirmed sign of life; of the operation at work
	turn chan struct{}    // taken by the operation at work
}

func newTenure(s *Source, base string, record source.Record, sign boottime.Instant) *tenure {
	return &tenure{Holding: remote.NewHolding(record, sign), src: s, base: base, sign: sign, turn: make(chan struct{}, 1)}
}

// MarkJob implements source.Lease: there is no place for it.
func (l *tenure) MarkJob(context.Context, ...process.Group) error { return source.ErrUnsupported }

// during makes an operation, after the one before. Its requests are not cancelled
// half-way: each has its own limit of time. So what it has done is always known, or
// known to be unknown.
func (l *tenure) during(ctx context.Context, operate func(context.Context) error) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-l.turn }()
	if err := l.Ended(); err != nil {
		return err
	}
	return operate(context.WithoutCancel(ctx))
}

// released releases the lock by free, once.
func (l *tenure) released(ctx context.Context, free func(context.Context) error) error {
	return l.during(ctx, func(ctx context.Context) error {
		err := free(ctx)
		switch {
		case err == nil:
			_ = l.End(source.ErrReleased)
		case errors.Is(err, source.ErrLost):
			_ = l.End(err)
		}
		return err
	})
}

// explain turns an error into what it means for the holder.
func (l *tenure) explain(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errGone), errors.Is(err, errMissing), errors.Is(err, errEnded):
		return &source.LostError{Name: l.Record().Name, Silence: l.sign.Elapsed(), Err: err}
	}
	return opError(op, l.Record().Name, err)
}
