package fakecloudshell

import (
	"fmt"
	"strings"
)

// AddUser adds somebody who can log on.
func (s *Server) AddUser(user User) error {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.users[user.Name]; taken || user.Name == "" {
		return fmt.Errorf("user %q: the name is taken, or empty", user.Name)
	}
	if len(user.Domains) == 0 {
		user.Domains = []string{DefaultDomain}
	}
	w.users[user.Name] = user
	return nil
}

// AddModel adds a kind of service.
func (s *Server) AddModel(model Model) error {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, taken := w.models[model.Name]; taken || model.Name == "" {
		return fmt.Errorf("service model %q: the name is taken, or empty", model.Name)
	}
	w.models[model.Name] = model
	return nil
}

// AddReservation starts a reservation.
func (s *Server) AddReservation(r Reservation) error {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	key := strings.ToLower(r.ID)
	if w.reservations[key] != nil || r.ID == "" {
		return fmt.Errorf("reservation %q: the id is taken, or empty", r.ID)
	}
	if r.Domain == "" {
		r.Domain = DefaultDomain
	}
	now := w.now().UTC()
	r.Services = cloneServices(r.Services)
	w.reservations[key] = &reservation{Reservation: r, data: map[string]string{}, created: now, changed: now}
	return nil
}

// change changes a reservation behind the API's back.
func (s *Server) change(id string, change func(*reservation)) error {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.reservations[strings.ToLower(id)]
	if r == nil {
		return fmt.Errorf("reservation %s: there is none", id)
	}
	change(r)
	r.changed = w.now().UTC()
	return nil
}

// EndReservation ends a reservation: its services go, and it cannot be changed any more.
func (s *Server) EndReservation(id string) error {
	return s.change(id, func(r *reservation) { r.ended, r.Services = true, nil })
}

// PutService adds a service, or replaces the one with its alias, as somebody with
// the portal open can.
func (s *Server) PutService(id string, service Service) error {
	return s.change(id, func(r *reservation) {
		if i := r.find(service.Alias, s.world.policy); i >= 0 {
			r.Services[i] = service.clone()
			return
		}
		r.Services = append(r.Services, service.clone())
	})
}

// DeleteService removes a service, as somebody with the portal open can.
func (s *Server) DeleteService(id, alias string) error {
	found := false
	err := s.change(id, func(r *reservation) {
		i := r.find(alias, s.world.policy)
		if found = i >= 0; found {
			r.Services = append(r.Services[:i:i], r.Services[i+1:]...)
		}
	})
	if err == nil && !found {
		return fmt.Errorf("reservation %s: there is no service %s", id, alias)
	}
	return err
}

// Services are those that a reservation has at this moment, whatever a cache says.
// There are none if there is no such reservation.
func (s *Server) Services(id string) []Service {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.reservations[strings.ToLower(id)]; r != nil {
		return cloneServices(r.Services)
	}
	return nil
}

// ExpireSessions ends all sessions. Tokens of commands stay valid for SecureLogon.
func (s *Server) ExpireSessions() {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	clear(s.world.sessions)
}

// Command is a script or driver that the server runs for a user.
type Command struct {
	server *Server
	token  string
}

// RunCommand begins one.
func (s *Server) RunCommand(user string) (*Command, error) {
	w := s.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.users[user]; !known {
		return nil, fmt.Errorf("run a command: there is no user %q", user)
	}
	c := &Command{s, w.newToken()}
	w.commands[c.token] = &command{user: user}
	return c, nil
}

// Token is the adminAuthToken that the command is given, for SecureLogon.
func (c *Command) Token() string { return c.token }

// End ends the command, its token, and the sessions made from that.
func (c *Command) End() {
	c.server.world.mu.Lock()
	defer c.server.world.mu.Unlock()
	c.server.world.commands[c.token].ended = true
}
