package fakecloudshell

import (
	"context"
	"io"
	"net/http"
	"strconv"
)

// exchange is one request and its answer.
type exchange struct {
	*Server
	incoming
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
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // a request that breaks off is none
	}
	x := exchange{Server: s, incoming: s.world.understand(r, body), gone: r.Context().Done()}
	x.travel(nil) // a request that is under way arrives, whatever its client does
	who, alive := s.world.authenticate(tokenOf(r))
	x.fault = s.fault(Call{Method: x.method, User: who.user.Name, Body: string(body)})
	x.deliver(w, x.perform(who, alive))
}

// wait returns when until is closed. The request ends here if its client goes away
// before that, or the server closes.
func (x *exchange) wait(until, gone <-chan struct{}) {
	select {
	case <-until:
	case <-gone:
		panic(http.ErrAbortHandler) // the way of net/http to close a connection
	case <-x.closing:
		panic(http.ErrAbortHandler)
	}
}

// travel takes as long as one way to the server does.
func (x *exchange) travel(gone <-chan struct{}) {
	if x.latency > 0 {
		arrived, stop := context.WithTimeout(context.Background(), x.latency/2)
		defer stop()
		x.wait(arrived.Done(), gone)
	}
}

// perform does what the request asks for, as far as its fault lets it.
func (x *exchange) perform(who session, alive bool) answer {
	switch {
	case x.refusal != nil:
		return plain(http.StatusBadRequest, x.refusal.Error())
	case !alive && !x.signature.anonymous && x.world.policy.DeadTokens == Unauthorized:
		return plain(http.StatusUnauthorized, errDeadToken.Message)
	case !alive && !x.signature.anonymous:
		return x.tell(nil, errDeadToken)
	case x.failure != nil:
		return x.tell(nil, x.failure)
	}
	if x.fault.Hold != nil {
		x.wait(x.fault.Hold, nil)
	}
	run := func() (*info, error) { return x.world.execute(x.signature, who, x.args) }
	switch x.fault.Execute {
	case Never:
		return x.tell(nil, nil)
	case OnceGone:
		x.postpone(x.fault.Later, func() { _, _ = run() }) // nobody is left to be told
		return x.tell(nil, nil)
	default:
		return x.tell(run())
	}
}

// tell is the API's answer.
func (x *exchange) tell(found *info, outcome error) answer {
	if x.fault.Failure != nil {
		found, outcome = nil, x.fault.Failure
	}
	return answer{http.StatusOK, "text/xml; charset=utf-8", encode(x.method, found, outcome, x.world.policy)}
}

func plain(status int, reason string) answer {
	return answer{status, "text/plain; charset=utf-8", []byte(reason + "\n")}
}

// deliver sends an answer, as far as the fault lets it.
func (x *exchange) deliver(w http.ResponseWriter, a answer) {
	x.travel(x.gone)
	if x.fault.Status != 0 {
		a = plain(x.fault.Status, http.StatusText(x.fault.Status))
	}
	length := len(a.body)
	switch x.fault.Reply {
	case Dropped:
		panic(http.ErrAbortHandler)
	case Withheld:
		x.wait(nil, x.gone)
	case Torn:
		a.body = a.body[:length/2]
	}
	w.Header().Set("Content-Type", a.media)
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // a client that has gone away is no concern of ours
	if x.fault.Reply == Torn {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}
