package cloudshell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/multilock/source"
)

// errEnded means that the reservation has ended, and all its locks with it.
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

// add adds a service with the owner's value. The server allows one service per alias.
func (s *Source) add(ctx context.Context, alias, owner string) error {
	attribute := node("AttributeNameValue", leaf("Name", s.opt.Attribute), leaf("Value", owner))
	_, err := s.call(ctx, "AddServiceToReservation", leaf("reservationId", s.opt.Reservation), leaf("serviceName", s.opt.Model),
		leaf("alias", alias), node("attributes", attribute))
	return err
}

// remove removes the service that has an alias now, no matter which client added it.
func (s *Source) remove(ctx context.Context, alias string) error {
	_, err := s.call(ctx, "RemoveServicesFromReservation", leaf("reservationId", s.opt.Reservation), node("services", leaf("string", alias)))
	return err
}

// ask makes a call that changes nothing, and repeats it if it was not answered.
func (s *Source) ask(ctx context.Context, method string, parameters ...string) (r *response, err error) {
	for range stepTries {
		r, err = s.call(ctx, method, parameters...)
		if !inDoubt(err) || ctx.Err() != nil {
			break
		}
	}
	return r, err
}

// list returns all current services of the reservation, bypassing the server's cache.
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

// ownerOf finds the owner's attribute. Newer models prefix it with their name.
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

// around returns the earliest and the latest time that the server's clock may show now; zero if the
// server does not report it.
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

// explainModel adds a hint about the service model to the error of a rejected service: the server's
// own messages for that are unknown.
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
	clock := source.Fine("clock", "the server reports the time")
	if _, err := s.Now(ctx); err != nil {
		clock = source.Warning("clock", "the server does not report the time: "+err.Error(),
			"only clients that wait for its whole TTL notice a dead holder on another host")
	}
	return []source.Finding{
		source.Fine("reservation", fmt.Sprintf("it exists, with %d services", len(services))), s.examineModel(ctx, "service model"), clock,
		source.Fine("killed holder", "taken over at once on its own host, and by other hosts after its TTL (run --ttl, 2m)"),
		source.Fine("scripts", "scripts of the published convention never break a lock: they try for 200 to 500 seconds, then go on WITHOUT it, "+
			"and at the end remove any service of its alias; a holder here notices that at its next heartbeat"),
	}
}

// examineModel looks for the attribute that identifies a holder.
func (s *Source) examineModel(ctx context.Context, subject string) source.Finding {
	r, err := s.ask(ctx, "GetServices", leaf("categoryName", ""), leaf("serviceName", s.opt.Model))
	switch {
	case apiFailure(err):
		r = &response{} // not every user may ask
	case err != nil:
		return source.Unusable(subject, err.Error(), "")
	}
	for _, model := range r.Info.Models {
		if _, has := s.ownerOf(model); has && model.Name == s.opt.Model {
			return source.Fine(subject, fmt.Sprintf("%q has the attribute %q", s.opt.Model, s.opt.Attribute))
		} else if model.Name == s.opt.Model {
			return source.Unusable(subject, fmt.Sprintf("%q has no attribute %q, which names the holder", s.opt.Model, s.opt.Attribute), importIt)
		}
	}
	return source.Fine(subject, fmt.Sprintf("this user sees no service model %q, as is usual without administrator rights. %s", s.opt.Model, importIt))
}
