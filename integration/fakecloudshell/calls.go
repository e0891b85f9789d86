package fakecloudshell

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Method is the name of a call, in the URL and in the root element.
type Method string

// The calls that the server implements. [Policy.Without] disables some.
const (
	Logon          Method = "Logon"
	SecureLogon    Method = "SecureLogon"
	AddService     Method = "AddServiceToReservation"
	RemoveServices Method = "RemoveServicesFromReservation"
	GetDetails     Method = "GetReservationDetails"
	GetServices    Method = "GetServices"
	GetTime        Method = "GetServerDateAndTime"
)

// signature is the implementation and the parameters of a method. Parameters are in the order of the
// API's documentation; those with a question mark may be missing, others may be empty.
type signature struct {
	execute    func(*Server, session, arguments) (info string, err error)
	parameters string
	anonymous  bool // creates a session, and needs none
}

func methods() map[Method]signature {
	return map[Method]signature{
		Logon:          {(*Server).logon, "username password domainName?", true},
		SecureLogon:    {(*Server).secureLogon, "token domainName?", true},
		AddService:     {(*Server).addService, "reservationId serviceName alias attributes", false},
		RemoveServices: {(*Server).removeServices, "reservationId services", false},
		GetDetails:     {(*Server).details, "reservationId disableCache?", false},
		GetServices:    {(*Server).services, "categoryName serviceName", false},
		GetTime:        {(*Server).serverTime, "", false},
	}
}

// Failure is the reply to a failed call, in HTTP 200. Most have code 100. Only the message for a
// duplicate alias is known to match the real server's; for most other failures even the code is
// unknown.
type Failure struct {
	Code    int
	Message string
}

// Error uses the wording of the Python clients.
func (f *Failure) Error() string {
	return fmt.Sprintf("CloudShell API error %d: %s", f.Code, f.Message)
}

func deadToken() *Failure { return &Failure{118, "The token is not, or no longer, valid"} }

// invalid returns the reply to parameters that no genuine client sends.
func invalid(format string, args ...any) *Failure {
	return &Failure{100, "the request is not as documented: " + fmt.Sprintf(format, args...)}
}

// element is an XML element of a request.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

// understand parses a request. An error that is not a *Failure means that it is not a call. The real
// server's reply to that is unknown, because no genuine client sends such requests.
func (s *Server) understand(r *http.Request, body []byte) (method Method, found signature, args arguments, err error) {
	method = Method(strings.TrimPrefix(r.URL.Path, "/ResourceManagerApiService/"))
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var root element
	malformed := xml.Unmarshal(body, &root)
	found, known := methods()[method]
	switch {
	case media != "text/xml" || r.Method != http.MethodPost || r.ContentLength < 0:
		err = fmt.Errorf("it is no POST of text/xml with its length: %s %q", r.Method, media)
	case r.Header.Get("ClientTimeZoneId") == "" || r.Header.Get("DateTimeFormat") == "":
		err = errors.New("the header ClientTimeZoneId or DateTimeFormat is missing")
	case malformed != nil:
		err = malformed
	case root.XMLName.Local != string(method):
		err = fmt.Errorf("the root element is %s instead of %s", root.XMLName.Local, method)
	case !known || slices.Contains(s.opt.Policy.Without, method):
		err = &Failure{101, "There is no such command"}
	default:
		args, err = bind(root, found.parameters)
	}
	return method, found, args, err
}

// arguments are the parameters of a request.
type arguments map[string]element

// bind extracts the parameters of a request. Unknown, missing, repeated and reordered parameters are
// errors: genuine clients always send the documented order, and what else the real server accepts is
// unknown.
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

// text returns a parameter's text, "" if it is missing.
func (a arguments) text(name string) string { return a[name].Text }

// session returns the session of a token, if it is still valid.
func (s *Server) session(token string) (session, bool) {
	found, known := s.sessions[token]
	return found, known && (found.command == nil || !found.command.ended)
}

func (s *Server) logon(_ session, args arguments) (string, error) {
	for _, user := range s.opt.Users {
		switch {
		case user.Name != args.text("username"):
		case user.Password != args.text("password"):
			return "", &Failure{118, "The password is wrong"}
		default:
			return s.begin(session{user: user}), nil
		}
	}
	return "", &Failure{100, "There is no user with this name"}
}

// secureLogon accepts the token of a running command or of a session.
func (s *Server) secureLogon(_ session, args arguments) (string, error) {
	token := args.text("token")
	if c := s.commands[token]; c != nil && !c.ended {
		return s.begin(session{c.user, c}), nil
	}
	if parent, alive := s.session(token); alive {
		return s.begin(parent), nil
	}
	return "", deadToken()
}

func (s *Server) begin(by session) string {
	token := newToken()
	s.sessions[token] = by
	return tag("ResponseInfo", "xsi:type", "LogonResponseInfo") + tag("Token", "Token", token) + "</Token></ResponseInfo>"
}

// newToken returns 16 bytes in base64, so it ends in "==" like the real tokens.
func newToken() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // documented never to fail
	return base64.StdEncoding.EncodeToString(random)
}

// reservation returns the reservation of a call. With running, it must not have ended.
func (s *Server) reservation(args arguments, running bool) (*reservation, error) {
	r := s.reservations[strings.ToLower(strings.TrimSpace(args.text("reservationId")))]
	switch {
	case r == nil:
		return nil, &Failure{100, "No reservation with this id was found"}
	case r.ended && running:
		return nil, &Failure{100, "The reservation has ended"}
	}
	return r, nil
}

// addService adds a service, which is how a script acquires the mutex.
func (s *Server) addService(_ session, args arguments) (string, error) {
	values := map[string]string{}
	for _, item := range args["attributes"].Children {
		members, err := bind(item, "Name Value?")
		if item.XMLName.Local != "AttributeNameValue" || err != nil {
			return "", invalid("parameter attributes has an element %s that is no AttributeNameValue", item.XMLName.Local)
		}
		values[members.text("Name")] = members.text("Value")
	}
	r, err := s.reservation(args, true)
	if err != nil {
		return "", err
	}
	alias := args.text("alias")
	i := slices.IndexFunc(s.opt.Models, func(m Model) bool { return m.Name == args.text("serviceName") })
	switch {
	case i < 0:
		return "", &Failure{100, "No service model with this name was found"}
	case alias == "":
		return "", &Failure{100, "A service needs an alias"}
	}
	added := Service{Model: s.opt.Models[i].Name, Alias: alias, Attributes: map[string]string{}}
	for _, name := range s.opt.Models[i].Attributes {
		added.Attributes[name] = values[name]
		delete(values, name)
	}
	switch {
	case len(values) > 0 && !s.opt.Policy.IgnoreUnknownAttributes:
		return "", &Failure{100, "The service model has no attribute with this name"}
	case r.find(alias) >= 0:
		return "", &Failure{100, "Service with given alias already exists"}
	}
	r.Services = append(r.Services, added)
	return "", nil
}

// removeServices removes services, which releases the mutex, whoever holds it.
func (s *Server) removeServices(_ session, args arguments) (string, error) {
	var aliases []string
	for _, item := range args["services"].Children {
		if item.XMLName.Local != "string" || len(item.Children) > 0 {
			return "", invalid("parameter services has an element %s instead of string", item.XMLName.Local)
		}
		aliases = append(aliases, item.Text)
	}
	r, err := s.reservation(args, true)
	if err != nil {
		return "", err
	}
	if !s.opt.Policy.RemoveQuietly && slices.ContainsFunc(aliases, func(alias string) bool { return r.find(alias) < 0 }) {
		return "", &Failure{100, "The reservation has no service with this alias"}
	}
	r.Services = without(r.Services, aliases...)
	return "", nil
}

// details returns a reservation, possibly from a cache of a few seconds.
func (s *Server) details(_ session, args arguments) (string, error) {
	disabled := strings.TrimSpace(args.text("disableCache"))
	if !slices.Contains([]string{"true", "1", "false", "0", ""}, disabled) {
		return "", invalid("parameter disableCache is %q instead of true or false", disabled)
	}
	r, err := s.reservation(args, false)
	if err != nil {
		return "", err
	}
	limit := s.opt.Policy.CacheFor
	if limit == 0 {
		limit = 5 * time.Second // according to the help of the Python clients
	}
	useCache := s.opt.Policy.IgnoreDisableCache || disabled != "true" && disabled != "1"
	if useCache && r.shown != "" && time.Since(r.since) < limit {
		return r.shown, nil
	}
	status := "Started"
	if r.ended {
		status = "Completed"
	}
	shown := tag("ResponseInfo", "xsi:type", "GetReservationDescriptionResponseInfo") + tag("ReservationDescription", "Id", r.ID, "Status", status) + "<Services>"
	for _, service := range r.Services {
		shown += tag("Service", "ServiceName", service.Model, "Alias", service.Alias) + "<Attributes>"
		for _, name := range slices.Sorted(maps.Keys(service.Attributes)) {
			shown += tag("Attribute", "Name", name, "Value", service.Attributes[name]) + "</Attribute>"
		}
		shown += "</Attributes></Service>"
	}
	shown += "</Services></ReservationDescription></ResponseInfo>"
	if useCache {
		r.shown, r.since = shown, time.Now()
	}
	return shown, nil
}

// services lists models. Those for administrators are hidden from other users. An empty name selects
// all.
func (s *Server) services(by session, args arguments) (string, error) {
	list := tag("ResponseInfo", "xsi:type", "ServicesListInfo") + "<Services>"
	for _, m := range s.opt.Models {
		if name := args.text("serviceName"); m.AdminOnly && !by.user.Admin || name != "" && m.Name != name {
			continue
		}
		list += tag("Service", "Name", m.Name) + "<Attributes>"
		for _, name := range m.Attributes {
			list += tag("Attribute", "Name", name, "Value", "") + "</Attribute>"
		}
		list += "</Attributes></Service>"
	}
	return list + "</Services></ResponseInfo>", nil
}

// serverTime has seven decimal places, whatever the caller's date format.
func (s *Server) serverTime(session, arguments) (string, error) {
	now := time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")
	return tag("ResponseInfo", "xsi:type", "ServerTimeInfo", "ServerDateTime", now) + "</ResponseInfo>", nil
}

// tag returns a start tag with attributes, given as names and values. Replies have their data in
// attributes, because the older Python client overlooks anything else.
func tag(name string, attributes ...string) string {
	text := "<" + name
	for pair := range slices.Chunk(attributes, 2) {
		text += " " + pair[0] + `="` + escape(pair[1]) + `"`
	}
	return text + ">"
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder never fails
	return b.String()
}

// envelope returns the frame of every reply. The attributes and their order matter: the Python clients
// search for the default namespace as text, in double quotes, and mishandle an xsi:type anywhere but on
// ResponseInfo.
func (s *Server) envelope(method Method, info string, outcome error) string {
	failure, failed := "", &Failure{}
	switch {
	case errors.As(outcome, &failed):
		failure = "<Error>" + escape(failed.Message) + "</Error>"
	case info == "" && !s.opt.Policy.NoEmptyInfo:
		info = "<ResponseInfo></ResponseInfo>"
	}
	head := tag("Response", "CommandName", string(method), "Success", fmt.Sprint(outcome == nil),
		"xmlns", "http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd",
		"xmlns:xsd", "http://www.w3.org/2001/XMLSchema", "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance")
	return fmt.Sprintf("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n%s%s<ErrorCode>%d</ErrorCode>%s</Response>", head, failure, failed.Code, info)
}
