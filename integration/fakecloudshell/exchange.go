package fakecloudshell

import (
	"errors"
	"net/http"
)

// exchange is one request and its answer.
type exchange struct {
	*Server
	incoming
	call  Call
	fault Fault
	gone  <-chan struct{} // closed when the client has gone away
}

// answer is what is to be delivered.
type answer struct {
	status int
	media  string
	body   []byte
}

func (s *Server) handle(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		panic(http.ErrAbortHandler) // the way of net/http to close a connection
	}
	defer s.running.Done()
	x := exchange{Server: s, incoming: s.understand(r), gone: r.Context().Done()}
	x.pause(Pause{For: s.latency / 2}, nil) // a request that is under way arrives, whatever its client does
	caller, alive := s.world.authenticate(x.token)
	x.call = s.journal.arrive(Request{
		Call:       Call{Method: x.method, User: caller.user.Name, Body: x.public},
		Connection: r.RemoteAddr,
		Header:     publicHeader(r.Header),
	})
	x.fault = s.fault(x.call)
	defer x.finish()
	x.deliver(w, x.perform(caller, alive))
}

// perform does what the request asks for, as far as its fault lets it.
func (x *exchange) perform(who session, alive bool) answer {
	switch {
	case x.refusal != nil:
		return plain(x.refusal.status, x.refusal.reason)
	case !alive && !x.signature.anonymous:
		return x.refuseToken()
	case x.failure != nil:
		x.note(func(r *Request) { r.Failure = x.failure })
		return x.tell(nil, x.failure)
	}
	x.pause(x.fault.Hold, nil)
	run := func() (any, error) { return x.execute(caller{who, x.token, x.dates}) }
	switch x.fault.Execute {
	case Never:
		return x.tell(nil, nil)
	case OnceGone:
		x.postpone(x.call.N, x.fault.Later, func() { _, _ = run() }) // nobody is left to be told
		return x.tell(nil, nil)
	default:
		return x.tell(run())
	}
}

// execute carries the call out and writes its outcome down.
func (x *exchange) execute(who caller) (any, error) {
	info, err := x.world.execute(x.signature, who, x.args)
	x.note(func(r *Request) {
		r.Executed = true
		errors.As(err, &r.Failure)
	})
	return info, err
}

func (x *exchange) refuseToken() answer {
	dead := &x.world.failures.DeadToken
	x.note(func(r *Request) { r.Failure = dead })
	if x.world.policy.DeadTokens == Unauthorized {
		return plain(http.StatusUnauthorized, dead.Message)
	}
	return x.tell(nil, dead)
}

// tell is the API's answer.
func (x *exchange) tell(info any, outcome error) answer {
	if x.fault.Failure != nil {
		info, outcome = nil, x.fault.Failure
	}
	body, err := encode(x.method, info, outcome, x.world.policy)
	if err != nil {
		x.log.Error("an answer cannot be encoded", "method", x.method, "error", err)
		return plain(http.StatusInternalServerError, err.Error())
	}
	if x.fault.Shape != nil {
		body = x.fault.Shape(body)
	}
	return answer{http.StatusOK, "text/xml; charset=utf-8", body}
}

func plain(status int, reason string) answer {
	return answer{status, "text/plain; charset=utf-8", []byte(reason + "\n")}
}

// finish writes down that there is nothing more to do. Status 0 is no answer.
func (x *exchange) finish() {
	var last Request
	x.note(func(r *Request) {
		r.Done = true
		last = *r
	})
	x.log.Info("request", "n", last.N, "method", last.Method, "user", last.User, "status", last.Status, "executed", last.Executed, "body", last.Body)
}

func (x *exchange) note(change func(*Request)) { x.journal.note(x.call.N, change) }
