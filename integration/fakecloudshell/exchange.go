package fakecloudshell

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
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

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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

// Failure is what a call that fails is answered with, in HTTP 200.
type Failure struct {
	Code    int
	Message string
}

// Error is in the words of the Python clients.
func (f *Failure) Error() string {
	return fmt.Sprintf("CloudShell API error %d: %s", f.Code, f.Message)
}

// The answers to what goes wrong. Most failures have code 100, and only the first text
// is the real server's; of most others not even the code is known.
var (
	errAliasTaken         = &Failure{100, "Service with given alias already exists"}
	errUnknownUser        = &Failure{100, "There is no user with this name"}
	errWrongPassword      = &Failure{118, "The password is wrong"}
	errDeadToken          = &Failure{118, "The token is not, or no longer, valid"}
	errUnknownMethod      = &Failure{101, "There is no such command"}
	errUnknownReservation = &Failure{100, "No reservation with this id was found"}
	errUnknownModel       = &Failure{100, "No service model with this name was found"}
	errUnknownAttribute   = &Failure{100, "The service model has no attribute with this name"}
	errNoAlias            = &Failure{100, "A service needs an alias"}
	errUnknownAlias       = &Failure{100, "The reservation has no service with this alias"}
	errReservationEnded   = &Failure{100, "The reservation has ended"}
)

// invalid is the answer to parameters that no genuine client sends.
func invalid(format string, args ...any) *Failure {
	return &Failure{100, "the request is not as documented: " + fmt.Sprintf(format, args...)}
}

// envelope is every answer. The attributes and their order matter: the Python
// clients look for the default namespace as text, in double quotes, and take an
// xsi:type anywhere but on ResponseInfo amiss.
type envelope struct {
	XMLName   xml.Name `xml:"Response"`
	Command   Method   `xml:"CommandName,attr"`
	Success   bool     `xml:"Success,attr"`
	Namespace string   `xml:"xmlns,attr"`
	XSD       string   `xml:"xmlns:xsd,attr"`
	XSI       string   `xml:"xmlns:xsi,attr"`
	Error     *string  `xml:"Error"`
	ErrorCode int      `xml:"ErrorCode"`
	Info      *info    `xml:"ResponseInfo"`
}

// info is what a success tells. Members of lists are elements with attributes: the
// older Python client overlooks others.
type info struct {
	Type     string       `xml:"xsi:type,attr,omitempty"`
	Time     string       `xml:"ServerDateTime,attr,omitempty"`
	Token    *tokenInfo   `xml:"Token"`
	Details  *description `xml:"ReservationDescription"`
	Services *serviceList `xml:"Services"`
}

type tokenInfo struct {
	Token string `xml:"Token,attr"`
}

type description struct {
	ID       string      `xml:"Id,attr"`
	Status   string      `xml:"Status,attr"`
	Services serviceList `xml:"Services"`
}

// serviceList is there when it is empty, too.
type serviceList struct{ Service []serviceInfo }

// serviceInfo is a service, or a model: those have a Name.
type serviceInfo struct {
	Name        string          `xml:"Name,attr,omitempty"`
	ServiceName string          `xml:"ServiceName,attr,omitempty"`
	Alias       string          `xml:"Alias,attr,omitempty"`
	Attributes  []attributeInfo `xml:"Attributes>Attribute"`
}

type attributeInfo struct {
	Name  string `xml:"Name,attr"`
	Value string `xml:"Value,attr"`
}

func newDetailsInfo(s *snapshot) *info {
	d := &description{ID: s.ID, Status: "Started"}
	if s.ended {
		d.Status = "Completed"
	}
	for _, service := range s.Services {
		shown := serviceInfo{ServiceName: service.Model, Alias: service.Alias}
		for _, name := range slices.Sorted(maps.Keys(service.Attributes)) {
			shown.Attributes = append(shown.Attributes, attributeInfo{name, service.Attributes[name]})
		}
		d.Services.Service = append(d.Services.Service, shown)
	}
	return &info{Type: "GetReservationDescriptionResponseInfo", Details: d}
}

// encode is the answer to a call that gave found, or a *Failure.
func encode(method Method, found *info, outcome error, policy Policy) []byte {
	e := &envelope{
		Command:   method,
		Success:   outcome == nil,
		Namespace: "http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd",
		XSD:       "http://www.w3.org/2001/XMLSchema",
		XSI:       "http://www.w3.org/2001/XMLSchema-instance",
	}
	var failure *Failure
	switch {
	case errors.As(outcome, &failure):
		e.Error, e.ErrorCode = &failure.Message, failure.Code
	case found != nil:
		e.Info = found
	case !policy.NoEmptyInfo:
		e.Info = &info{}
	}
	body, err := xml.Marshal(e)
	if err != nil {
		panic(err) // all that it has can be written
	}
	return append([]byte(`<?xml version="1.0" encoding="utf-8"?>`+"\n"), body...)
}
