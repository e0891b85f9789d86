package cloudshell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// errEnded says that the reservation is over, and all its locks with it.
var errEnded = errors.New("the reservation has ended")

func (s *Source) endedError(err error) error {
	return &source.InvalidError{
		What: "cloudshell reservation", Got: s.opt.Reservation, Why: "has ended: there is nothing left to be locked", Err: errors.Join(errEnded, err),
	}
}

// call makes a call about the reservation.
func (s *Source) call(ctx context.Context, method string, parameters ...string) (*response, error) {
	r, err := s.client.call(ctx, method, parameters...)
	if ended(err) {
		return nil, s.endedError(err)
	}
	return r, err
}

// add adds a service with the owner's value. The server allows one of each alias.
func (s *Source) add(ctx context.Context, alias, owner string) error {
	attribute := node("AttributeNameValue", leaf("Name", s.opt.Attribute), leaf("Value", owner))
	_, err := s.call(ctx, "AddServiceToReservation", leaf("reservationId", s.opt.Reservation), leaf("serviceName", s.opt.Model),
		leaf("alias", alias), node("attributes", attribute))
	return err
}

// remove removes the service that has an alias now, whatever client added it.
func (s *Source) remove(ctx context.Context, alias string) error {
	_, err := s.call(ctx, "RemoveServicesFromReservation", leaf("reservationId", s.opt.Reservation), node("services", leaf("string", alias)))
	return err
}

// ask makes a call that changes nothing, and makes it again if it got no answer.
func (s *Source) ask(ctx context.Context, method string, parameters ...string) (r *response, err error) {
	for range stepTries {
		r, err = s.call(ctx, method, parameters...)
		if !inDoubt(err) || ctx.Err() != nil {
			break
		}
	}
	return r, err
}

// list returns all services of the reservation as they are, past the server's cache.
func (s *Source) list(ctx context.Context) ([]serviceInfo, error) {
	const method = "GetReservationDetails"
	r, err := s.ask(ctx, method, leaf("reservationId", s.opt.Reservation), leaf("disableCache", "true"))
	if err != nil {
		return nil, err
	}
	if len(r.Info.Details) != 1 {
		return nil, senseless(method, "the answer has no reservation in it")
	}
	found := r.Info.Details[0]
	if digestOf(found.ID) != s.digest {
		return nil, senseless(method, fmt.Sprintf("the answer is about another reservation, %q", found.ID))
	}
	if strings.EqualFold(found.Status, "Completed") {
		return nil, s.endedError(nil)
	}
	return found.Services, nil
}

// ownerOf finds the owner's attribute. Newer models have their own name before it.
func (s *Source) ownerOf(i serviceInfo) (owner string, has bool) {
	for _, a := range i.Attributes {
		if a.Name == s.opt.Attribute || strings.HasSuffix(a.Name, "."+s.opt.Attribute) {
			return a.Value, true
		}
	}
	return "", false
}

// Now implements source.Timekeeper.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	const method = "GetServerDateAndTime"
	r, err := s.ask(ctx, method)
	var now time.Time
	if err == nil {
		if now, err = time.Parse(time.RFC3339Nano, r.Info.Time); err != nil {
			err = senseless(method, err.Error())
		}
	}
	if apiFailure(err) {
		err = errors.Join(source.ErrUnsupported, err)
	}
	return now, s.Named(ctx, "read the server's clock", "", err)
}

// around is the time of the server, as early and as late as it may be now; zero if the
// server does not tell.
func (s *Source) around(ctx context.Context, age time.Duration) (early, late time.Time) {
	early, late, _ = s.clock.Read(age, func() (time.Time, error) {
		if s.clockless {
			return time.Time{}, source.ErrUnsupported
		}
		now, err := s.Now(ctx)
		s.clockless = errors.Is(err, source.ErrUnsupported)
		return now, err
	})
	return early, late
}

// explainModel adds what may be wrong with the service model to the refusal of a service:
// the server's words for that are not known.
func (s *Source) explainModel(err error) error {
	if !apiFailure(err) || aliasTaken(err) {
		return err
	}
	return fmt.Errorf("%w; does the server have the service model %q with the attribute %q? %s", err, s.opt.Model, s.opt.Attribute, importIt)
}

const importIt = "If not, an administrator imports it (https://github.com/multilock/go/blob/main/docs/cloudshell.md has it as a package), or name another one with model= and attribute= in the URL"

// Examine implements source.Examiner. It changes nothing.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	services, err := s.list(ctx)
	if err != nil {
		return []source.Finding{source.Unusable("reservation", err.Error(), "")}
	}
	clock := source.Fine("clock", "the server tells the time")
	if _, err := s.Now(ctx); err != nil {
		clock = source.Warning("clock", "the server does not tell the time: "+err.Error(),
			"a dead holder on another host is noticed only by clients that wait for its whole TTL")
	}
	return []source.Finding{
		source.Fine("reservation", fmt.Sprintf("it is there, with %d services", len(services))), s.examineModel(ctx, "service model"), clock,
		source.Fine("killed holder", "its lock is taken over at once on its own host, and by other hosts when its TTL has passed (run --ttl, 2m)"),
		source.Fine("scripts", "those of the published convention never break a lock: they try for 200 to 500 seconds, and then go on WITHOUT it, "+
			"and remove whatever has its alias in the end; a holder here notices that at its next heartbeat"),
	}
}

// examineModel looks for the attribute by which a holder is known.
func (s *Source) examineModel(ctx context.Context, subject string) source.Finding {
	r, err := s.ask(ctx, "GetServices", leaf("categoryName", ""), leaf("serviceName", s.opt.Model))
	switch {
	case apiFailure(err):
		r = &response{} // it is not for every user to ask
	case err != nil:
		return source.Unusable(subject, err.Error(), "")
	}
	for _, model := range r.Info.Models {
		if _, has := s.ownerOf(model); has && model.Name == s.opt.Model {
			return source.Fine(subject, fmt.Sprintf("%q has the attribute %q", s.opt.Model, s.opt.Attribute))
		} else if model.Name == s.opt.Model {
			return source.Unusable(subject, fmt.Sprintf("%q has no attribute %q, by which a holder is known", s.opt.Model, s.opt.Attribute), importIt)
		}
	}
	return source.Fine(subject, fmt.Sprintf("this user sees no service model %q, as is usual for users who are no administrators. %s", s.opt.Model, importIt))
}
