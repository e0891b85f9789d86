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
	if saysServer(err, "reservation has ended") {
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

// around is the time of the server, as early and as late as it may be now; ok is false
// if the server does not tell.
func (s *Source) around(ctx context.Context, age time.Duration) (early, late time.Time, ok bool) {
	early, late, err := s.clock.Read(age, func() (time.Time, error) {
		if s.clockless {
			return time.Time{}, source.ErrUnsupported
		}
		now, err := s.Now(ctx)
		s.clockless = errors.Is(err, source.ErrUnsupported)
		return now, err
	})
	return early, late, err == nil
}

// now is for a heartbeat; zero if the server does not tell the time.
func (s *Source) now(ctx context.Context) time.Time {
	_, late, _ := s.around(ctx, source.ClockCarried)
	return late
}

const packaged = "(https://github.com/multilock/go/blob/main/docs/cloudshell.md has it as a package)"

// findModel reports what keeps locks from working with the service model, "" if nothing
// does, and whether this user sees the model.
func (s *Source) findModel(ctx context.Context) (trouble string, seen bool, err error) {
	r, err := s.ask(ctx, "GetServices", leaf("categoryName", ""), leaf("serviceName", s.opt.Model))
	if err != nil && !apiFailure(err) { // it is not for every user to ask
		return "", false, err
	}
	if err == nil {
		for _, model := range r.Info.Models {
			if model.Name != s.opt.Model {
				continue
			}
			if _, has := s.ownerOf(model); !has {
				trouble = fmt.Sprintf("the service model %q has no attribute %q, by which a holder is known: an administrator adds it %s, or name another with model= or attribute= in the URL; scripts of the convention do not mind",
					s.opt.Model, s.opt.Attribute, packaged)
			}
			return trouble, true, nil
		}
	}
	return fmt.Sprintf("this user sees no service model %q: if the server has none, an administrator imports it %s, or name another one with model= in the URL",
		s.opt.Model, packaged), false, nil
}

// explainModel adds what is wrong with the service model to the refusal of a service,
// whose words for that are not known.
func (s *Source) explainModel(ctx context.Context, err error) error {
	if apiFailure(err) && !aliasTaken(err) {
		if trouble, _, failed := s.findModel(ctx); failed == nil && trouble != "" {
			return fmt.Errorf("%w; %s", err, trouble)
		}
	}
	return err
}

// Examine implements source.Examiner. It changes nothing.
func (s *Source) Examine(ctx context.Context) []source.Finding {
	findings := []source.Finding{s.examineConnection()}
	services, err := s.list(ctx)
	if err != nil {
		return append(findings, source.Unusable("reservation", err.Error(), ""))
	}
	return append(findings, source.Fine("reservation", fmt.Sprintf("it is there, with %d services", len(services))),
		s.examineModel(ctx), s.examineClock(ctx),
		source.Fine("killed holder", "its lock is taken over at once on its own host, and by other hosts when its TTL has passed (run --ttl, 2m)"),
		source.Fine("scripts", "those of the published convention never break a lock: they try for 200 to 500 seconds, and then go on WITHOUT it, "+
			"and remove whatever has its alias in the end; a holder here notices that at its next heartbeat"))
}

func (s *Source) examineConnection() source.Finding {
	const subject = "connection"
	switch {
	case s.opt.Scheme == schemeHTTP:
		return source.Warning(subject, "HTTP: "+inClear, "have HTTPS set up on the server, and leave scheme=http out of the URL")
	case s.opt.Insecure:
		return source.Warning(subject, "HTTPS, but any certificate is accepted", "name the server's certificate with cafile=FILE instead of insecure=true")
	}
	return source.Fine(subject, "HTTPS, and the server's certificate is verified")
}

func (s *Source) examineModel(ctx context.Context) source.Finding {
	const subject = "service model"
	trouble, seen, err := s.findModel(ctx)
	switch {
	case err != nil:
		return source.Unusable(subject, err.Error(), "")
	case !seen:
		return source.Fine(subject, trouble+"; users who are no administrators may not see it, and can use it all the same")
	case trouble != "":
		return source.Unusable(subject, trouble, "")
	}
	return source.Fine(subject, fmt.Sprintf("%q has the attribute %q", s.opt.Model, s.opt.Attribute))
}

func (s *Source) examineClock(ctx context.Context) source.Finding {
	if _, err := s.Now(ctx); err != nil {
		return source.Warning("clock", "the server does not tell the time: "+err.Error(),
			"a dead holder on another host is noticed only by clients that wait for its whole TTL")
	}
	return source.Fine("clock", "the server tells the time")
}
