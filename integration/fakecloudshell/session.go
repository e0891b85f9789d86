package fakecloudshell

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"time"
)

// session is what a token stands for.
type session struct {
	user    User
	domain  string
	expires time.Time
	command *command // whose token it was made from, nil if from a password
}

// command is a script or driver that the server runs.
type command struct {
	user  string
	ended bool
}

func (w *world) logon(_ caller, args arguments) (any, error) {
	user, known := w.users[args.text("username")]
	if !known {
		return nil, &w.failures.UnknownUser
	}
	if user.Password != args.text("password") {
		return nil, &w.failures.WrongPassword
	}
	return w.begin(session{user: user}, args.text("domainName"))
}

// secureLogon takes the token of a running command or of a session.
func (w *world) secureLogon(_ caller, args arguments) (any, error) {
	token := args.text("token")
	if c := w.commands[token]; c != nil && !c.ended {
		return w.begin(session{user: w.users[c.user], command: c}, args.text("domainName"))
	}
	if parent, alive := w.session(token); alive {
		return w.begin(session{user: parent.user, command: parent.command}, args.text("domainName"))
	}
	return nil, &w.failures.DeadToken
}

func (w *world) begin(s session, domain string) (any, error) {
	if domain == "" {
		domain = DefaultDomain
	}
	if !slices.Contains(s.user.Domains, domain) {
		return nil, &w.failures.UnknownDomain
	}
	s.domain, s.expires = domain, w.now().Add(w.lifetime)
	token := w.newToken()
	w.sessions[token] = s
	return newLogonInfo(s, token), nil
}

// session finds what a token stands for, if it still does.
func (w *world) session(token string) (session, bool) {
	s, known := w.sessions[token]
	alive := known && w.now().Before(s.expires) && (s.command == nil || !s.command.ended)
	return s, alive
}

// authenticate finds the session of a call.
func (w *world) authenticate(token string) (session, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session(token)
}

// logoff ends the caller's session, or that of the token it names.
func (w *world) logoff(who caller, args arguments) (any, error) {
	token := args.text("token")
	if token == "" {
		token = who.token
	}
	if c := w.sessions[token].command; c != nil && w.policy.LogoffEndsCommand {
		c.ended = true
	}
	delete(w.sessions, token)
	return nil, nil
}

// newToken is 16 bytes, whose base64 ends in "==", as the real ones do.
func (w *world) newToken() string {
	length := 16
	if w.policy.LongTokens {
		length = 673 // the text has 900 bytes and ends in "==" too
	}
	random := make([]byte, length)
	_, _ = rand.Read(random) // it never fails, says its documentation
	return base64.StdEncoding.EncodeToString(random)
}
