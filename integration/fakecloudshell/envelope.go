package fakecloudshell

import (
	"encoding/xml"
	"errors"
)

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
	Info      any      `xml:"ResponseInfo"`
}

func newEnvelope(method Method) *envelope {
	return &envelope{
		Command:   method,
		Success:   true,
		Namespace: "http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd",
		XSD:       "http://www.w3.org/2001/XMLSchema",
		XSI:       "http://www.w3.org/2001/XMLSchema-instance",
	}
}

const declaration = `<?xml version="1.0" encoding="utf-8"?>` + "\n"

// encode is the answer to a call that gave info or a *Failure.
func encode(method Method, info any, outcome error, policy Policy) ([]byte, error) {
	e := newEnvelope(method)
	e.Info = info
	if info == nil && !policy.NoEmptyInfo {
		e.Info = &empty{}
	}
	if outcome != nil {
		var failure *Failure
		if !errors.As(outcome, &failure) {
			return nil, outcome
		}
		e.Success, e.Info = false, nil
		e.Error, e.ErrorCode = &failure.Message, failure.Code
	}
	body, err := xml.Marshal(e)
	return append([]byte(declaration), body...), err
}
