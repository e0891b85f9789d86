package fakecloudshell

import (
	"encoding/xml"
	"fmt"
	"mime"
	"net/http"
	"strings"
)

// Method is the name of a call, as the URL and the root element have it.
type Method string

// The calls that the server knows. [Policy.Without] takes some away.
const (
	Logon          Method = "Logon"
	SecureLogon    Method = "SecureLogon"
	AddService     Method = "AddServiceToReservation"
	RemoveServices Method = "RemoveServicesFromReservation"
	GetDetails     Method = "GetReservationDetails"
	GetServices    Method = "GetServices"
	GetTime        Method = "GetServerDateAndTime"
)

// signature is what a method does and takes. Parameters are in the order of the API's
// documents; those with a question mark may be missing, others may be empty.
type signature struct {
	execute    func(*world, session, arguments) (*info, error)
	parameters string
	anonymous  bool // it makes a session, and needs none
}

func methods() map[Method]signature {
	return map[Method]signature{
		Logon:          {(*world).logon, "username password domainName?", true},
		SecureLogon:    {(*world).secureLogon, "token domainName?", true},
		AddService:     {(*world).addService, "reservationId serviceName alias attributes", false},
		RemoveServices: {(*world).removeServices, "reservationId services", false},
		GetDetails:     {(*world).details, "reservationId disableCache?", false},
		GetServices:    {(*world).services, "categoryName serviceName", false},
		GetTime:        {(*world).serverTime, "", false},
	}
}

// pathPrefix is what the path of a call begins with.
const pathPrefix = "/ResourceManagerApiService/"

// element is one XML element of a request.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// incoming is a request as it was understood.
type incoming struct {
	method    Method
	signature signature
	args      arguments
	refusal   error // it is not a call at all
	failure   error // it is a call, but not one that can be carried out
}

// understand reads a request. What the real server says to one that is no call is not
// known; no genuine client gets there.
func (w *world) understand(r *http.Request, body []byte) incoming {
	var root element
	in := incoming{method: Method(strings.TrimPrefix(r.URL.Path, pathPrefix)), refusal: checkHeaders(r)}
	err := xml.Unmarshal(body, &root)
	switch {
	case in.refusal != nil:
	case err != nil:
		in.refusal = fmt.Errorf("the body is not well-formed: %w", err)
	case root.XMLName.Local != string(in.method):
		in.refusal = fmt.Errorf("the root element is %s instead of %s", root.XMLName.Local, in.method)
	}
	if in.refusal != nil {
		return in
	}
	found, known := w.methods[in.method]
	if !known {
		in.failure = errUnknownMethod
		return in
	}
	in.signature = found
	in.args, in.failure = bind(root, found.parameters)
	return in
}

// checkHeaders checks what the documents call mandatory about a request.
func checkHeaders(r *http.Request) error {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "text/xml" || r.Method != http.MethodPost || r.ContentLength < 0 {
		return fmt.Errorf("it is no POST of text/xml with its length: %s %q", r.Method, media)
	}
	for _, name := range []string{"ClientTimeZoneId", "DateTimeFormat"} {
		if r.Header.Get(name) == "" {
			return fmt.Errorf("the header %s is missing", name)
		}
	}
	return nil
}

// tokenOf reads the header Authorization: pairs of key and value. A value may have "="
// in it.
func tokenOf(r *http.Request) string {
	for field := range strings.SplitSeq(r.Header.Get("Authorization"), ";") {
		if key, value, _ := strings.Cut(field, "="); strings.EqualFold(key, "Token") {
			return value
		}
	}
	return ""
}

// arguments are the parameters that a request has.
type arguments map[string]element

// bind takes the parameters out of a request. A parameter that is unknown,
// missing, repeated or out of order is an error: the clients of the real server
// send them in one order, and nobody knows what else it takes.
func bind(root element, parameters string) (arguments, error) {
	bound, rest := arguments{}, root.Children
	for parameter := range strings.FieldsSeq(parameters) {
		name, optional := strings.CutSuffix(parameter, "?")
		switch {
		case len(rest) > 0 && rest[0].XMLName.Local == name:
			bound[name], rest = rest[0], rest[1:]
		case !optional:
			return nil, invalid("parameter %s is missing or out of order", name)
		}
	}
	if len(rest) > 0 {
		return nil, invalid("parameter %s is unknown, repeated or out of order", rest[0].XMLName.Local)
	}
	return bound, nil
}

// text is a parameter's text, "" if it is missing.
func (a arguments) text(name string) string { return a[name].Text }

// flag is an xs:boolean; a missing or empty one is false.
func (a arguments) flag(name string) (bool, error) {
	switch text := strings.TrimSpace(a.text(name)); text {
	case "true", "1":
		return true, nil
	case "false", "0", "":
		return false, nil
	default:
		return false, invalid("parameter %s is %q instead of true or false", name, text)
	}
}

// strings is a list: <name><string>a</string><string>b</string></name>.
func (a arguments) strings(name string) ([]string, error) {
	var list []string
	for _, item := range a[name].Children {
		if item.XMLName.Local != "string" || len(item.Children) > 0 {
			return nil, invalid("parameter %s has an element %s instead of string", name, item.XMLName.Local)
		}
		list = append(list, item.Text)
	}
	return list, nil
}

// pairs is a list of structures with a Name and a Value, in this order; the value may be
// missing.
func (a arguments) pairs(name, structure string) (map[string]string, error) {
	values := map[string]string{}
	for _, item := range a[name].Children {
		members, err := bind(item, "Name Value?")
		if item.XMLName.Local != structure || err != nil {
			return nil, invalid("parameter %s has an element %s that is no %s", name, item.XMLName.Local, structure)
		}
		values[members.text("Name")] = members.text("Value")
	}
	return values, nil
}
