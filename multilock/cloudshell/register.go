package cloudshell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/multilock/go/multilock/source"
)

// A register is a value that changes step by step, each step being decided by the
// server. Of MUTEX it is a row of services, MUTEX.TURN.1, MUTEX.TURN.2 and so on;
// the value is what the highest of them says. Whoever has seen number n changes the
// value by adding n+1, which succeeds for one and fails for everybody else. No
// alias is ever used again, so nobody reaches a later state with what was decided
// on an earlier one, however late a request is carried out.
//
// Lower numbers are removed. A request to add one of those, carried out late, then
// succeeds; so a step is believed in only when a listing shows that nothing is above it.

// turn is one service of a register.
type turn struct {
	number uint64
	text   string
	kind   string
	brand  string
	result string
	fields map[string]string
	held   held   // of kindHeld
	why    string // it cannot be understood, because
}

// view is what a listing shows of one alias.
type view struct {
	turns  []turn // in the order of their numbers
	bare   *bare  // the service that scripts know
	pieces map[string]map[int]string
	double string // an alias that two services have, which cannot be
}

// bare is the service with the alias of a lock, without anything behind it.
type bare struct {
	model, text string
	held        held // of ours, if why is ""
	why         string
}

// top is the register's state; number 0 if it has never had a value.
func (v *view) top() turn {
	if len(v.turns) == 0 {
		return turn{}
	}
	return v.turns[len(v.turns)-1]
}

// newTurn reads a turn.
func newTurn(number uint64, text string) turn {
	t := turn{number: number, text: text}
	v, err := parseValue(text)
	if err != nil {
		t.why = err.Error()
		return t
	}
	t.kind, t.fields, t.brand, t.result = v.kind, v.fields, v.fields[keyBrand], v.fields[keyResult]
	switch {
	case v.kind == kindHeld:
		if t.held, err = parseHeld(v); err != nil {
			t.why = err.Error()
		}
	case t.brand == "" || v.kind != kindFree && v.kind != kindList:
		t.why = "its value is of an unknown kind"
	}
	return t
}

func newBare(s service) *bare {
	b := &bare{model: s.model, text: s.owner}
	v, err := parseValue(s.owner)
	if err == nil {
		b.held, err = parseHeld(v)
	}
	if err != nil {
		b.why = err.Error()
	}
	return b
}

// arrange sorts a listing by the aliases that its services belong to.
func arrange(services []service) map[string]*view {
	views, seen := map[string]*view{}, map[string]bool{}
	of := func(base, alias string) *view {
		v := views[base]
		if v == nil {
			v = &view{pieces: map[string]map[int]string{}}
			views[base] = v
		}
		if seen[alias] {
			v.double = alias
		}
		seen[alias] = true
		return v
	}
	for _, s := range services {
		if base, number, ok := cutTurn(s.alias); ok {
			v := of(base, s.alias)
			v.turns = append(v.turns, newTurn(number, s.owner))
		} else if base, id, piece, ok := cutPiece(s.alias); ok {
			v := of(base, s.alias)
			if v.pieces[id] == nil {
				v.pieces[id] = map[int]string{}
			}
			v.pieces[id][piece] = s.owner
		} else {
			of(s.alias, s.alias).bare = newBare(s)
		}
	}
	for _, v := range views {
		slices.SortFunc(v.turns, func(a, b turn) int { return cmp.Compare(a.number, b.number) })
	}
	return views
}

// views are all aliases of the reservation.
func (s *Source) views(ctx context.Context) (map[string]*view, error) {
	services, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	return arrange(services), nil
}

// view is one alias, as a listing shows it.
func (s *Source) view(ctx context.Context, base string) (*view, error) {
	views, err := s.views(ctx)
	if err != nil {
		return nil, err
	}
	v := views[base]
	if v == nil {
		v = &view{}
	}
	if v.double != "" {
		return nil, fmt.Errorf("the server has two services with the alias %s; it does not keep aliases apart, and nothing can be locked on it", v.double)
	}
	return v, nil
}

// errTaken says that somebody else has made a step.
var errTaken = errors.New("somebody else was faster")

// stepTries is how often one step is tried while the server's answers leave open
// what came of it.
const stepTries = 3

// advance makes the step from a number to the next. Without an error the register
// then had that value, and the view shows it at the top. With errTaken somebody else
// has made that step or a later one, and the view shows that; this step may have
// been made before. Otherwise it was not made, or, with source.ErrUnsure, that
// cannot be learned: it may still be made later.
func (s *Source) advance(ctx context.Context, base string, from uint64, text string) (*view, error) {
	var doubt, last error
	for range stepTries {
		added := s.add(ctx, turnAlias(base, from+1), text)
		if added != nil && !inDoubt(added) && !apiFailure(added) {
			last = added // it was never sent, or nothing will help
			if final(added) {
				break
			}
			continue
		}
		v, err := s.view(ctx, base)
		if err == nil {
			var done bool
			if done, err = settleStep(v, from+1, text, added); done {
				s.dropBelow(ctx, base, v, from+1, text)
				return v, err
			}
			err = contradiction(added)
		}
		last = err
		if added == nil || inDoubt(added) {
			doubt = errors.Join(added, err)
		}
		if final(err) {
			break
		}
	}
	if doubt != nil {
		return nil, errors.Join(source.ErrUnsure, doubt)
	}
	return nil, last
}

// dropBelow removes a step that came too late: it lies below the register's state, and
// means nothing. The next holder would do it, if there is one.
func (s *Source) dropBelow(ctx context.Context, base string, v *view, number uint64, text string) {
	late := func(t turn) bool { return t.number == number && t.text == text && number < v.top().number }
	if slices.ContainsFunc(v.turns, late) {
		_ = s.remove(ctx, turnAlias(base, number))
	}
}

// settleStep draws the conclusion from a listing that followed a step.
func settleStep(v *view, number uint64, text string, added error) (done bool, err error) {
	top := v.top()
	switch {
	case top.number == number && top.text == text:
		return true, nil
	case top.number == number && top.text == "" && added == nil:
		return true, errNoOwner
	case top.number >= number:
		return true, errTaken
	}
	return false, nil // not to be seen: try again
}

// errNoOwner says that the server dropped the owner.
var errNoOwner = errors.New("the service model does not keep the owner's attribute; choose another model, or plain locks")

// contradiction is for a step that is not to be seen. What the server said about it
// counts, unless it said that it was made, or that the alias is taken.
func contradiction(added error) error {
	switch {
	case added == nil:
		return errors.New("the server does not list a service that it has added: its listings are out of date")
	case aliasTaken(added):
		return fmt.Errorf("the server does not list the service which it says is there; is there a lock whose name differs in case only? (%w)", added)
	}
	return added
}

// apiFailure says that the server answered that a call failed, for a reason that has
// to do with the call.
func apiFailure(err error) bool {
	var call *CallError
	return errors.As(err, &call) && !call.InDoubt() && !call.Unsent && !final(err)
}
