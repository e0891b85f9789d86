package cloudshell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/multilock/go/multilock/source"
)

// A register is a value that changes in steps, and the server decides the outcome of each. The
// register of MUTEX is a series of services, MUTEX.TURN.1, MUTEX.TURN.2 and so on, of which the
// highest has the value. A step from number n adds n+1, which succeeds for one client and fails for
// all others. No number is ever used again, so a request that was based on an earlier state never
// changes a later one, however late it is carried out.
//
// Lower numbers are removed. A late request to add one of them succeeds again; so a step only
// counts if a listing shows that no higher number exists.

// turn is one service of a register, or the service that scripts know: then the number is 0.
type turn struct {
	number      uint64
	model, text string
	kind        string
	reservation string
	held        held   // for kindHeld
	why         string // why it cannot be read, "" if it can
}

// view is a listing of one lock.
type view struct {
	turns []turn // by number
	bare  *turn  // the service that scripts know
}

// top returns the register's state; the number is 0 if it never had a value.
func (v *view) top() turn {
	if len(v.turns) == 0 {
		return turn{}
	}
	return v.turns[len(v.turns)-1]
}

func newTurn(number uint64, model, text string) turn {
	t := turn{number: number, model: model, text: text}
	kind, f, err := parseValue(text)
	if err == nil && kind == kindHeld {
		t.held, err = parseHeld(f)
	} else if err == nil && number == 0 {
		err = errors.New("its owner's value is of an unknown kind")
	}
	if err != nil {
		t.why = err.Error()
		return t
	}
	t.kind, t.reservation = kind, f[keyReservation]
	return t
}

// arrange groups services by lock.
func (s *Source) arrange(services []serviceInfo) map[string]*view {
	views := map[string]*view{}
	for _, service := range services {
		base, number, isTurn := cutTurn(service.Alias)
		if !isTurn {
			base, number = service.Alias, 0
		}
		v := cmp.Or(views[base], &view{})
		views[base] = v
		owner, _ := s.ownerOf(service)
		if t := newTurn(number, service.Model, owner); isTurn {
			v.turns = append(v.turns, t)
		} else {
			v.bare = &t
		}
	}
	for _, v := range views {
		slices.SortFunc(v.turns, func(a, b turn) int { return cmp.Compare(a.number, b.number) })
	}
	return views
}

// views lists all services of the reservation.
func (s *Source) views(ctx context.Context) (map[string]*view, error) {
	services, err := s.list(ctx)
	return s.arrange(services), err
}

// view lists the services of one lock.
func (s *Source) view(ctx context.Context, base string) (*view, error) {
	views, err := s.views(ctx)
	if err != nil {
		return nil, err
	}
	return cmp.Or(views[base], &view{}), nil
}

// status is the state of a lock in a view.
type status struct {
	held
	isHeld bool
	// key changes with each heartbeat, and with each holder.
	key string
}

// read returns the state of a lock. The register decides; without one, or when it is free, the
// service that scripts know does, unless it was left behind by a holder whose turn has ended, or
// came with a blueprint.
func (s *Source) read(v *view) status {
	top := v.top()
	key := fmt.Sprint(top.number, " ", top.text)
	switch {
	case top.why != "":
		return foreign(key, fmt.Sprintf("turn %d cannot be understood: %s", top.number, top.why))
	case top.kind == kindHeld && top.reservation == s.digest:
		return status{held: top.held, isHeld: true, key: key}
	}
	switch b := v.bare; {
	case b == nil:
		return status{}
	case b.text == "":
		return foreign(b.text, "it was taken by a script that names no owner")
	case b.why != "":
		return foreign(b.text, fmt.Sprintf("it was taken by a script, with the owner %q", source.Printable(source.Shorten(b.text, source.MaxUser))))
	case b.reservation != s.digest, top.number > 0 && top.reservation == s.digest:
		return status{} // left behind
	default:
		return status{held: b.held, isHeld: true, key: b.text}
	}
}

// foreign returns the status of a lock whose holder sends no heartbeats.
func foreign(key, why string) status {
	return status{held: held{record: source.Record{Foreign: why}}, isHeld: true, key: key}
}

// errTaken means that another client has made a step.
var errTaken = errors.New("another client was faster")

// stepTries is how often one step is tried while its outcome is unknown.
const stepTries = 3

// advance makes the step from a number to the next. Without an error the register then had that
// value, and the view shows it at the top. With errTaken another client made that step or a later
// one, and the view shows that; this step may have been made before. Otherwise it was not made, or,
// with source.ErrUnsure, it may have been made or may still be made later.
func (s *Source) advance(ctx context.Context, base string, from uint64, text string) (*view, error) {
	var doubt, last error
	for range stepTries {
		if last = s.add(ctx, turnAlias(base, from+1), text); last == nil || inDoubt(last) || apiFailure(last) {
			added, unsure := last, last == nil || inDoubt(last)
			v, err := s.view(ctx, base)
			if err == nil {
				err = settle(v, from+1, text, added)
			}
			if v != nil && (err == nil || errors.Is(err, errTaken) || errors.Is(err, errNoOwner)) {
				return v, err
			}
			if last = err; unsure {
				doubt = errors.Join(source.ErrUnsure, added, err)
			}
		} // otherwise it was never sent
		if final(last) {
			break
		}
	}
	return nil, cmp.Or(doubt, last)
}

// settle determines the outcome of a step from a listing. If the listing does not show the step,
// the server's answer decides. An answer that the service was added, or exists, contradicts the
// listing, and becomes an error.
func settle(v *view, number uint64, text string, added error) error {
	switch top := v.top(); {
	case top.number == number && top.text == text:
		return nil
	case top.number == number && added == nil && strings.HasPrefix(text, top.text):
		return errNoOwner
	case top.number >= number:
		return errTaken
	case added == nil:
		return errors.New("the server does not list a service that it has added: its listings are out of date")
	case aliasTaken(added):
		return fmt.Errorf("the server reports that the service exists, but does not list it; is there a lock whose name differs in case only? (%w)", added)
	}
	return added
}

// errNoOwner means that the server dropped the owner, or a part of it.
var errNoOwner = errors.New("the service model does not keep the owner's attribute; name another one with model= or attribute= in the URL")
