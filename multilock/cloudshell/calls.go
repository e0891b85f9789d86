package cloudshell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/multilock/go/multilock/boottime"
	"github.com/multilock/go/multilock/source"
)

// service is a service of the reservation.
type service struct {
	model, alias string
	owner        string // "" if it has no owner
}

// call makes a call. The end of the reservation is an error of its own.
func (s *Source) call(ctx context.Context, method string, parameters ...string) (*response, error) {
	r, err := s.client.call(ctx, method, parameters...)
	if ended(err) {
		return nil, s.endedError(err)
	}
	return r, err
}

// add adds a service with the owner's value, or without any if that is "". The
// server allows one of each alias.
func (s *Source) add(ctx context.Context, alias, owner string) error {
	attributes := node("attributes")
	if owner != "" {
		attributes = node("attributes", node("AttributeNameValue", leaf("Name", s.opt.Attribute), leaf("Value", owner)))
	}
	_, err := s.call(ctx, "AddServiceToReservation", leaf("reservationId", s.opt.Reservation), leaf("serviceName", s.opt.Model),
		leaf("alias", alias), attributes)
	return s.explainModel(err)
}

// remove removes the service that has an alias now, whoever added it.
func (s *Source) remove(ctx context.Context, alias string) error {
	_, err := s.call(ctx, "RemoveServicesFromReservation", leaf("reservationId", s.opt.Reservation), node("services", leaf("string", alias)))
	return err
}

// ask makes a call that changes nothing, so it can be made again if it got no answer.
func (s *Source) ask(ctx context.Context, method string, parameters ...string) (r *response, err error) {
	for range stepTries {
		r, err = s.call(ctx, method, parameters...)
		if !inDoubt(err) || ctx.Err() != nil {
			break
		}
	}
	return r, err
}

// list gets all services of the reservation as they are, past the server's cache.
func (s *Source) list(ctx context.Context) ([]service, error) {
	parameters := []string{leaf("reservationId", s.opt.Reservation)}
	if !s.opt.OldDetails {
		parameters = append(parameters, leaf("disableCache", "true"))
	}
	const method = "GetReservationDetails"
	r, err := s.ask(ctx, method, parameters...)
	if err != nil {
		return nil, err
	}
	if len(r.Info) != 1 || len(r.Info[0].Details) != 1 {
		return nil, &CallError{Method: method, Status: 200, Err: errors.New("the answer has no reservation in it")}
	}
	found := r.Info[0].Details[0]
	if !sameID(found.ID, s.opt.Reservation) {
		return nil, &CallError{Method: method, Status: 200, Err: fmt.Errorf("the answer is about another reservation, %q", found.ID)}
	}
	if strings.EqualFold(found.Status, "Completed") {
		return nil, s.endedError(nil)
	}
	var services []service
	for _, i := range found.Services {
		owner, _ := s.ownerOf(i)
		services = append(services, service{model: i.Model, alias: i.Alias, owner: owner})
	}
	return services, nil
}

func sameID(a, b string) bool {
	return strings.EqualFold(strings.Trim(a, "{} "), strings.Trim(b, "{} "))
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

// hasOwners asks whether the locks' model has the owner's attribute. A model that
// this user cannot see is taken for one that has; it is noted. Called with s.mu.
func (s *Source) hasOwners(ctx context.Context) (bool, error) {
	s.unseen = true
	r, err := s.ask(ctx, "GetServices", leaf("categoryName", ""), leaf("serviceName", s.opt.Model))
	if apiFailure(err) {
		return true, nil // not for this user to ask
	}
	if err != nil {
		return false, err
	}
	for _, i := range r.Info {
		for _, model := range i.Models {
			if model.Name == s.opt.Model {
				s.unseen = false
				_, has := s.ownerOf(model)
				return has, nil
			}
		}
	}
	return true, nil
}

// serverTime asks for the server's time.
func (s *Source) serverTime(ctx context.Context) (time.Time, error) {
	const method = "GetServerDateAndTime"
	r, err := s.ask(ctx, method)
	if err != nil {
		return time.Time{}, err
	}
	if len(r.Info) != 1 {
		return time.Time{}, &CallError{Method: method, Status: 200, Err: errors.New("the answer has no time in it")}
	}
	now, err := time.Parse(time.RFC3339Nano, r.Info[0].Time)
	if err != nil {
		return time.Time{}, &CallError{Method: method, Status: 200, Err: err}
	}
	return now, nil
}

var errNoClock = errors.New("the server did not tell the time just now")

// around is the time of the server, as early and as late as it may be now; ok is false
// if the server does not tell. One that did not answer just now is not asked again.
func (s *Source) around(ctx context.Context, age time.Duration) (early, late time.Time, ok bool) {
	early, late, err := s.clock.Read(age, func() (time.Time, error) {
		if !s.clockless.IsZero() && s.clockless.Elapsed() < source.ClockCarried {
			return time.Time{}, errNoClock
		}
		now, err := s.serverTime(ctx)
		if s.clockless = (boottime.Instant{}); err != nil {
			s.clockless = boottime.Now()
		}
		return now, err
	})
	return early, late, err == nil
}

// now is for a sign of life; zero if the server does not tell the time.
func (s *Source) now(ctx context.Context) time.Time {
	_, late, _ := s.around(ctx, source.ClockCarried)
	return late
}

// Now implements source.Timekeeper, by GetServerDateAndTime.
func (s *Source) Now(ctx context.Context) (time.Time, error) {
	now, err := s.serverTime(ctx)
	if apiFailure(err) {
		err = errors.Join(source.ErrUnsupported, err)
	}
	return now, opError("read the server's clock", "", err)
}

// errEnded says that the reservation is over, and all its locks with it.
var errEnded = errors.New("the reservation has ended")

func (s *Source) endedError(err error) error {
	return &source.InvalidError{
		What: "cloudshell reservation", Got: s.opt.Reservation, Why: "has ended: there is nothing left to be locked", Err: errors.Join(errEnded, err),
	}
}
