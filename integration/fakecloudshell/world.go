package fakecloudshell

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"time"
)

// world is what the server knows. Each call is carried out at one moment, under
// one lock: that is what makes AddServiceToReservation decide between two.
type world struct {
	policy  Policy
	methods map[Method]signature
	models  []Model

	mu           sync.Mutex
	users        map[string]User
	reservations map[string]*reservation // by lower-case id
	sessions     map[string]session      // by token
	commands     map[string]*Command     // by token
}

func newWorld(opt Options) *world {
	w := &world{
		policy: opt.Policy, methods: methods(), models: opt.Models,
		users: map[string]User{}, reservations: map[string]*reservation{}, sessions: map[string]session{}, commands: map[string]*Command{},
	}
	for _, name := range opt.Policy.Without {
		delete(w.methods, name)
	}
	for _, user := range opt.Users {
		w.users[user.Name] = user
	}
	for _, r := range opt.Reservations {
		w.reservations[strings.ToLower(r.ID)] = &reservation{Reservation: r}
	}
	return w
}

// session is what a token stands for.
type session struct {
	user    User
	command *Command // whose token it was made from, nil if from a password
}

// reservation is the server's side of a Reservation.
type reservation struct {
	Reservation
	ended bool
	cache *snapshot // what GetReservationDetails showed last, nil at first
}

// find is the index of a service, -1 if there is none.
func (r *reservation) find(alias string) int {
	return slices.IndexFunc(r.Services, func(s Service) bool { return s.Alias == alias })
}

// snapshot is a reservation as it was at a moment.
type snapshot struct {
	reservation
	read time.Time
}

// execute carries one call out.
func (w *world) execute(s signature, who session, args arguments) (*info, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.execute(w, who, args)
}

// authenticate finds the session of a token, if it still counts.
func (w *world) authenticate(token string) (session, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session(token)
}

func (w *world) session(token string) (session, bool) {
	s, known := w.sessions[token]
	return s, known && (s.command == nil || !s.command.ended)
}

func (w *world) logon(_ session, args arguments) (*info, error) {
	user, known := w.users[args.text("username")]
	switch {
	case !known:
		return nil, errUnknownUser
	case user.Password != args.text("password"):
		return nil, errWrongPassword
	}
	return w.begin(session{user: user}), nil
}

// secureLogon takes the token of a running command or of a session.
func (w *world) secureLogon(_ session, args arguments) (*info, error) {
	token := args.text("token")
	if c := w.commands[token]; c != nil && !c.ended {
		return w.begin(session{user: w.users[c.user], command: c}), nil
	}
	if parent, alive := w.session(token); alive {
		return w.begin(parent), nil
	}
	return nil, errDeadToken
}

func (w *world) begin(s session) *info {
	token := newToken()
	w.sessions[token] = s
	return &info{Type: "LogonResponseInfo", Token: &tokenInfo{token}}
}

// newToken is 16 bytes, whose base64 ends in "==", as the real ones do.
func newToken() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails, says its documentation
	return base64.StdEncoding.EncodeToString(random)
}

// reservation finds the reservation that a call is about.
func (w *world) reservation(args arguments) (*reservation, error) {
	if r := w.reservations[strings.ToLower(strings.TrimSpace(args.text("reservationId")))]; r != nil {
		return r, nil
	}
	return nil, errUnknownReservation
}

// running finds a reservation that can still be changed.
func (w *world) running(args arguments) (*reservation, error) {
	r, err := w.reservation(args)
	if err == nil && r.ended {
		return nil, errReservationEnded
	}
	return r, err
}

// addService is the attempt to take the mutex.
func (w *world) addService(_ session, args arguments) (*info, error) {
	values, err := args.pairs("attributes", "AttributeNameValue")
	if err != nil {
		return nil, err
	}
	r, err := w.running(args)
	if err != nil {
		return nil, err
	}
	alias := args.text("alias")
	model := slices.IndexFunc(w.models, func(m Model) bool { return m.Name == args.text("serviceName") })
	switch {
	case model < 0:
		return nil, errUnknownModel
	case alias == "":
		return nil, errNoAlias
	}
	added := Service{Model: w.models[model].Name, Alias: alias, Attributes: map[string]string{}}
	for _, name := range w.models[model].Attributes {
		added.Attributes[name] = ""
	}
	for name, value := range values {
		if _, known := added.Attributes[name]; known {
			added.Attributes[name] = value
		} else if !w.policy.IgnoreUnknownAttributes {
			return nil, errUnknownAttribute
		}
	}
	if r.find(alias) >= 0 {
		return nil, errAliasTaken
	}
	r.Services = append(r.Services, added)
	return nil, nil
}

// removeServices frees the mutex, whoever has it.
func (w *world) removeServices(_ session, args arguments) (*info, error) {
	aliases, err := args.strings("services")
	if err != nil {
		return nil, err
	}
	r, err := w.running(args)
	if err != nil {
		return nil, err
	}
	missing := slices.ContainsFunc(aliases, func(alias string) bool { return r.find(alias) < 0 })
	if missing && w.policy.UnknownAliases == RemoveNone {
		return nil, errUnknownAlias
	}
	r.Services = slices.DeleteFunc(r.Services, func(s Service) bool { return slices.Contains(aliases, s.Alias) })
	return nil, nil
}

// details shows a reservation, perhaps as it was a few seconds ago.
func (w *world) details(_ session, args arguments) (*info, error) {
	disabled, err := args.flag("disableCache")
	if err != nil {
		return nil, err
	}
	r, err := w.reservation(args)
	if err != nil {
		return nil, err
	}
	useCache := !disabled || w.policy.IgnoreDisableCache
	if useCache && r.cache != nil && w.policy.cached(time.Since(r.cache.read)) {
		return newDetailsInfo(r.cache), nil
	}
	shown := &snapshot{reservation: *r, read: time.Now()}
	shown.Services = slices.Clone(r.Services)
	if useCache {
		r.cache = shown
	}
	return newDetailsInfo(shown), nil
}

// services lists models, those for administrators to them only. An empty name is
// every one.
func (w *world) services(who session, args arguments) (*info, error) {
	list := serviceList{Service: []serviceInfo{}}
	for _, m := range w.models {
		if name := args.text("serviceName"); m.AdminOnly && !who.user.Admin || m.Name != cmp.Or(name, m.Name) {
			continue
		}
		shown := serviceInfo{Name: m.Name}
		for _, name := range m.Attributes {
			shown.Attributes = append(shown.Attributes, attributeInfo{Name: name})
		}
		list.Service = append(list.Service, shown)
	}
	return &info{Type: "ServicesListInfo", Services: &list}, nil
}

// serverTime has seven digits of a second, whatever the caller's format of dates is.
func (w *world) serverTime(session, arguments) (*info, error) {
	return &info{Type: "ServerTimeInfo", Time: time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")}, nil
}
