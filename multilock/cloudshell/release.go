package cloudshell

import (
	"context"
	"errors"
)

// Release implements source.Lease: the service that scripts know goes first, as
// long as it is certain that it is this lease's, and then the register is freed.
func (l *lease) Release(ctx context.Context) error { return l.released(ctx, l.release) }

func (l *lease) release(ctx context.Context) error {
	v, err := l.hold(ctx)
	if err == nil && !l.exposed && !l.cleared {
		err = l.clearOwn(ctx, v)
	}
	if errors.Is(err, errGone) && l.cleared {
		return nil // an earlier call has freed it, and its answer was lost
	}
	if err != nil {
		return l.explain("release", err)
	}
	if err := l.part(ctx); err != nil {
		return opError("release", l.Record().Name, err)
	}
	if l.exposed {
		return l.explain("release", errMissing)
	}
	return nil
}

// hold makes sure that the register is this lease's, and stays so for the requests
// to come. A holder that was silent for long takes a step: that tells, and nobody
// then takes it for dead. Who has begun to free the register looks whether that is done.
func (l *lease) hold(ctx context.Context) (*view, error) {
	if l.parting == "" && (l.doubt || l.sign.Elapsed() >= l.Record().TTL/2) {
		return l.step(ctx, l.result)
	}
	return l.look(ctx)
}

// clearOwn removes the service that scripts know, unless it is not ours any more.
func (l *lease) clearOwn(ctx context.Context, v *view) error {
	if l.guarded(v) == nil {
		l.leaving = true
		if err := l.clear(ctx, v); err != nil {
			return err
		}
	}
	l.cleared = l.leaving // otherwise it was not ours to be removed, and exposed says so
	return nil
}

// part frees the register. Repeated, it is the same step.
func (l *lease) part(ctx context.Context) error {
	if l.parting == "" {
		l.parting = l.free()
	}
	err := l.src.add(ctx, turnAlias(l.base, l.number+1), l.parting)
	if err != nil {
		_, err = l.leave(ctx, l.parting)
	}
	if err != nil && !errors.Is(err, errTaken) {
		return err
	}
	_ = l.src.remove(ctx, turnAlias(l.base, l.number)) // or the next holder does it
	return nil
}
