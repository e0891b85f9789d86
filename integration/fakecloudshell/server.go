package fakecloudshell

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a running server. It is safe for concurrent use.
type Server struct {
	web     *httptest.Server // nil if requests only come through [Server.ServeHTTP]
	opt     Options
	closing chan struct{}

	// mu makes each call atomic, so that AddServiceToReservation lets only one of two contenders win.
	mu           sync.Mutex
	inject       Injector
	counts       map[Method]int
	late         []func()                // in order of arrival
	reservations map[string]*reservation // by lower-case ID
	sessions     map[string]session      // by token
	commands     map[string]*Command     // by token
}

// session is the state of a token.
type session struct {
	user    User
	command *Command // the command whose token created the session, nil after a logon with a password
}

// reservation is the server's state of a Reservation.
type reservation struct {
	Reservation
	ended bool
	shown string    // the last reply of GetReservationDetails
	since time.Time // time of that reply
}

func (r *reservation) find(alias string) int {
	return slices.IndexFunc(r.Services, func(s Service) bool { return s.Alias == alias })
}

// Start starts a server on the loopback interface for the duration of a test.
func Start(t testing.TB, opt Options) *Server {
	t.Helper()
	s := New(opt)
	s.web = httptest.NewUnstartedServer(s)
	s.web.Config.ErrorLog = log.New(io.Discard, "", 0) // it would report untrusted certificates and aborted replies
	s.web.Config.SetKeepAlivesEnabled(!opt.Policy.CloseConnections)
	if opt.Scheme == HTTPS {
		s.web.StartTLS()
	} else {
		s.web.Start()
	}
	t.Cleanup(func() {
		close(s.closing)
		s.web.Close()
	})
	return s
}

// New returns a server that does not listen. To close a connection it panics, like any http.Handler.
func New(opt Options) *Server {
	s := &Server{
		opt: opt, closing: make(chan struct{}), counts: map[Method]int{},
		reservations: map[string]*reservation{}, sessions: map[string]session{}, commands: map[string]*Command{},
	}
	s.Inject(nil)
	for _, r := range opt.Reservations {
		s.AddReservation(r)
	}
	return s
}

// URL returns the server's base URL, such as http://127.0.0.1:8029.
func (s *Server) URL() string { return s.web.URL }

// Address returns the host and port that the server listens on.
func (s *Server) Address() string { return s.web.Listener.Addr().String() }

// WriteCA writes the certificate that clients of an HTTPS server must trust to a file, as PEM.
func (s *Server) WriteCA(path string) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.web.Certificate().Raw}), 0o600)
}

// Inject sets the Injector for all requests from now on. nil ends all faults.
func (s *Server) Inject(inject Injector) {
	if inject == nil {
		inject = func(Call) Fault { return Fault{} }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = inject
}

// Count returns the number of requests of a method.
func (s *Server) Count(method Method) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[method]
}

// Land executes all delayed calls in order of arrival, and returns their number.
func (s *Server) Land() int {
	s.mu.Lock()
	late := s.late
	s.late = nil
	s.mu.Unlock()
	for _, execute := range late {
		execute()
	}
	return len(late)
}

// AddReservation adds a reservation.
func (s *Server) AddReservation(r Reservation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reservations[strings.ToLower(r.ID)] = &reservation{Reservation: r}
}

// change changes a reservation without the API.
func (s *Server) change(id string, change func(*reservation)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reservations[strings.ToLower(id)]
	if r == nil {
		return fmt.Errorf("reservation %s: there is none", id)
	}
	change(r)
	return nil
}

// EndReservation ends a reservation: its services are removed, and it cannot be changed any more.
func (s *Server) EndReservation(id string) error {
	return s.change(id, func(r *reservation) { r.ended, r.Services = true, nil })
}

// PutService adds a service or replaces the one with its alias, like the portal.
func (s *Server) PutService(id string, service Service) error {
	service.Attributes = maps.Clone(service.Attributes)
	return s.change(id, func(r *reservation) { r.Services = append(without(r.Services, service.Alias), service) })
}

// DeleteService removes a service, like the portal.
func (s *Server) DeleteService(id, alias string) error {
	return s.change(id, func(r *reservation) { r.Services = without(r.Services, alias) })
}

func without(services []Service, aliases ...string) []Service {
	return slices.DeleteFunc(slices.Clone(services), func(s Service) bool { return slices.Contains(aliases, s.Alias) })
}

// Services returns a reservation's current services, bypassing the cache. It returns nil if there is no
// such reservation.
func (s *Server) Services(id string) (services []Service) {
	_ = s.change(id, func(r *reservation) { services = slices.Clone(r.Services) })
	return services
}

// ExpireSessions ends all sessions. Tokens of commands stay valid for SecureLogon.
func (s *Server) ExpireSessions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.sessions)
}

// Command is a script or driver that the server runs for a user.
type Command struct {
	server *Server
	user   User
	token  string
	ended  bool
}

// RunCommand starts a command.
func (s *Server) RunCommand(user string) (*Command, error) {
	i := slices.IndexFunc(s.opt.Users, func(u User) bool { return u.Name == user })
	if i < 0 {
		return nil, fmt.Errorf("run a command: there is no user %q", user)
	}
	c := &Command{server: s, user: s.opt.Users[i], token: newToken()}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands[c.token] = c
	return c, nil
}

// Token returns the command's adminAuthToken, for SecureLogon.
func (c *Command) Token() string { return c.token }

// End ends the command, its token, and all sessions created with the token.
func (c *Command) End() {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.ended = true
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // an incomplete request does not count
	}
	method, call, args, err := s.understand(r, body)
	time.Sleep(s.opt.Latency / 2) // a request on its way arrives even if its client disconnects
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), "Token=")
	s.mu.Lock()
	by, alive := s.session(token)
	s.counts[method]++
	inject := s.inject
	s.mu.Unlock()
	fault := inject(Call{Method: method, User: by.user.Name, Body: string(body)})
	status, media := http.StatusOK, "text/xml"
	var answer string
	switch called := errors.As(err, new(*Failure)); {
	case err != nil && !called:
		status, media, answer = http.StatusBadRequest, "text/plain", err.Error()
	case !alive && !call.anonymous && !s.opt.Policy.DeadTokens118:
		status, media, answer = http.StatusUnauthorized, "text/plain", "dead token"
	default:
		if !alive && !call.anonymous {
			err = deadToken()
		}
		info := ""
		if err == nil {
			info, err = s.perform(fault, func() (string, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				return call.execute(s, by, args)
			})
		}
		if fault.Failure != nil {
			info, err = "", fault.Failure
		}
		answer = s.envelope(method, info, err)
	}
	time.Sleep(s.opt.Latency / 2)
	if fault.Status != 0 {
		status, media, answer = fault.Status, "text/plain", http.StatusText(fault.Status)
	}
	length := len(answer)
	switch fault.Reply {
	case Dropped:
		panic(http.ErrAbortHandler)
	case Withheld:
		s.wait(nil, r.Context().Done())
	case Torn:
		answer = answer[:length/2]
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer) // the client may have disconnected
	if fault.Reply == Torn {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// perform executes a call as its fault dictates.
func (s *Server) perform(fault Fault, execute func() (string, error)) (info string, err error) {
	if fault.Hold != nil {
		s.wait(fault.Hold, nil)
	}
	late := func() { _, _ = execute() }
	switch {
	case fault.Execute == AtOnce:
		return execute()
	case fault.Execute == OnceGone && fault.Later > 0:
		time.AfterFunc(fault.Later, late)
	case fault.Execute == OnceGone:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.late = append(s.late, late)
	}
	return "", nil
}

// wait returns when until is closed. It aborts the request if the client disconnects before that, or
// the server closes.
func (s *Server) wait(until, gone <-chan struct{}) {
	select {
	case <-until:
	case <-gone:
		panic(http.ErrAbortHandler) // this is how net/http closes a connection
	case <-s.closing:
		panic(http.ErrAbortHandler)
	}
}
