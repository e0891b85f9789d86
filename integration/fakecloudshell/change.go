package fakecloudshell

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// AddReservation starts a reservation.
func (s *Server) AddReservation(r Reservation) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	s.world.reservations[strings.ToLower(r.ID)] = &reservation{Reservation: r}
}

// change changes a reservation behind the API's back.
func (s *Server) change(id string, change func(*reservation)) error {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	r := s.world.reservations[strings.ToLower(id)]
	if r == nil {
		return fmt.Errorf("reservation %s: there is none", id)
	}
	change(r)
	return nil
}

// EndReservation ends a reservation: its services go, and it cannot be changed any more.
func (s *Server) EndReservation(id string) error {
	return s.change(id, func(r *reservation) { r.ended, r.Services = true, nil })
}

// PutService adds a service, or replaces the one with its alias, as somebody with
// the portal open can.
func (s *Server) PutService(id string, service Service) error {
	service.Attributes = maps.Clone(service.Attributes)
	return s.change(id, func(r *reservation) {
		if i := r.find(service.Alias); i >= 0 {
			r.Services[i] = service
			return
		}
		r.Services = append(r.Services, service)
	})
}

// DeleteService removes a service, as somebody with the portal open can.
func (s *Server) DeleteService(id, alias string) error {
	found := false
	err := s.change(id, func(r *reservation) {
		i := r.find(alias)
		if found = i >= 0; found {
			r.Services = slices.Delete(r.Services, i, i+1)
		}
	})
	if err == nil && !found {
		return fmt.Errorf("reservation %s: there is no service %s", id, alias)
	}
	return err
}

// Services are those that a reservation has at this moment, whatever a cache says.
// There are none if there is no such reservation.
func (s *Server) Services(id string) (services []Service) {
	_ = s.change(id, func(r *reservation) { services = slices.Clone(r.Services) })
	return services
}

// ExpireSessions ends all sessions. Tokens of commands stay valid for SecureLogon.
func (s *Server) ExpireSessions() {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	clear(s.world.sessions)
}

// Command is a script or driver that the server runs for a user.
type Command struct {
	world *world
	user  string
	token string
	ended bool
}

// RunCommand begins one.
func (s *Server) RunCommand(user string) (*Command, error) {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.users[user]; !known {
		return nil, fmt.Errorf("run a command: there is no user %q", user)
	}
	c := &Command{world: w, user: user, token: newToken()}
	w.commands[c.token] = c
	return c, nil
}

// Token is the adminAuthToken that the command is given, for SecureLogon.
func (c *Command) Token() string { return c.token }

// End ends the command, its token, and the sessions made from that.
func (c *Command) End() {
	c.world.mu.Lock()
	defer c.world.mu.Unlock()
	c.ended = true
}
