package fakecloudshell

import (
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
)

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
