package fakecloudshell_test

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

const (
	lab     = "5c1e0b3a-77f2-4c0d-9c56-0f0d4a9b2e11"
	details = "<reservationId>" + lab + "</reservationId>"
)

// clock is a server's clock that tests move by hand.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2024, 5, 17, 9, 30, 0, 123456700, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// basic has an administrator, two users, the model with an owner, and one
// reservation that is open to one of the users.
func basic() fakecloudshell.Options {
	return fakecloudshell.Options{
		Users: []fakecloudshell.User{
			{Name: "admin", Password: "s3cret", Admin: true, Domains: []string{"Global", "Other"}},
			{Name: "ann", Password: "a&<b>"},
			{Name: "bob", Password: "bob"},
		},
		Models: []fakecloudshell.Model{fakecloudshell.OwnedMutex(), {Name: "Plain", Family: "Things"}},
		Reservations: []fakecloudshell.Reservation{
			{ID: lab, Name: "Lab 7", Owner: "ann"},
			{ID: "other", Domain: "Other"},
		},
	}
}

func start(t *testing.T, opt fakecloudshell.Options) *fakecloudshell.Server {
	t.Helper()
	server, err := fakecloudshell.New(opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server
}

// within bounds what a test waits for.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// peer is a client of the server, written for these tests alone.
type peer struct {
	url    string
	client *http.Client
	token  string
	header http.Header // replaces the usual ones
}

func newPeer(t *testing.T, server *fakecloudshell.Server) *peer {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.Pool()}}
	t.Cleanup(transport.CloseIdleConnections)
	return &peer{url: server.URL(), client: &http.Client{Transport: transport}}
}

// logOn is a new peer with a session.
func logOn(t *testing.T, server *fakecloudshell.Server, user, password string) *peer {
	t.Helper()
	p := newPeer(t, server)
	p.token = p.must(t, "Logon", credentials(user, password, "")).Info.Token.Token
	return p
}

func admin(t *testing.T, server *fakecloudshell.Server) *peer {
	return logOn(t, server, "admin", "s3cret")
}

func credentials(user, password, domain string) string {
	return param("username", user) + param("password", password) + param("domainName", domain)
}

func param(name, text string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text))
	return fmt.Sprintf("<%s>%s</%s>", name, &escaped, name)
}

// reply is an answer of the API.
type reply struct {
	Status int    `xml:"-"`
	Type   string `xml:"-"`
	Body   string `xml:"-"`

	CommandName string `xml:",attr"`
	Success     bool   `xml:",attr"`
	Error       *string
	ErrorCode   int
	Info        struct {
		Type   string `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
		Domain struct {
			Name string `xml:",attr"`
			ID   string `xml:"DomainId,attr"`
		}
		Token struct {
			Token string `xml:",attr"`
		}
		Time        string `xml:"ServerDateTime,attr"`
		Description struct {
			Status           string    `xml:",attr"`
			ModificationDate string    `xml:",attr"`
			Services         []service `xml:"Services>Service"`
		} `xml:"ReservationDescription"`
		Slim struct {
			Status string `xml:",attr"`
		} `xml:"ReservationSlimStatus"`
		Services []service `xml:"Services>Service"`
		Data     []struct {
			Key   string `xml:",attr"`
			Value string `xml:",attr"`
		} `xml:"SandboxDataKeyValues>SandboxDataKeyValue"`
	} `xml:"ResponseInfo"`
}

type service struct {
	Name                          string `xml:",attr"` // of a model
	ServiceName                   string `xml:",attr"`
	Alias                         string `xml:",attr"`
	ResourceLiveStatusName        string `xml:",attr"`
	ResourceLiveStatusDescription string `xml:",attr"`
	Attributes                    []struct {
		Name  string `xml:",attr"`
		Value string `xml:",attr"`
	} `xml:"Attributes>Attribute"`
}

func (s service) owner() string {
	for _, a := range s.Attributes {
		if a.Name == fakecloudshell.OwnerAttribute {
			return a.Value
		}
	}
	return ""
}

// request is what a client sends, to any path.
func (p *peer) request(ctx context.Context, path, body string) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{
		"Content-Type": {"text/xml"}, "ClientTimeZoneId": {"UTC"}, "DateTimeFormat": {"MM/dd/yyyy HH:mm"},
		"Authorization": {"MachineName=test:8029;Token=" + p.token},
	}
	maps.Copy(request.Header, p.header)
	return request, nil
}

// post sends one request and reads what comes, which may be anything.
func (p *peer) post(ctx context.Context, method, body string) (reply, error) {
	request, err := p.request(ctx, "/ResourceManagerApiService/"+method, body)
	if err != nil {
		return reply{}, err
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return reply{Status: answer.StatusCode, Type: answer.Header.Get("Content-Type"), Body: string(content)}, err
}

// call makes a call that is answered by the API.
func (p *peer) call(ctx context.Context, method, parameters string) (reply, error) {
	r, err := p.post(ctx, method, "<"+method+">"+parameters+"</"+method+">")
	if err != nil {
		return r, err
	}
	if r.Status != http.StatusOK {
		return r, fmt.Errorf("HTTP %d: %s", r.Status, r.Body)
	}
	return r, xml.Unmarshal([]byte(r.Body), &r)
}

// must makes a call that succeeds.
func (p *peer) must(t *testing.T, method, parameters string) reply {
	t.Helper()
	r, err := p.call(within(t), method, parameters)
	require.NoError(t, err)
	require.True(t, r.Success, r.Body)
	require.Nil(t, r.Error)
	require.Zero(t, r.ErrorCode)
	require.Equal(t, method, r.CommandName)
	return r
}

// refused makes a call that the API refuses.
func (p *peer) refused(t *testing.T, method, parameters string) fakecloudshell.Failure {
	t.Helper()
	r, err := p.call(within(t), method, parameters)
	require.NoError(t, err)
	require.False(t, r.Success, r.Body)
	require.NotNil(t, r.Error, "both clients crash if there is none")
	return fakecloudshell.Failure{Code: r.ErrorCode, Message: *r.Error}
}

// services are what the listing shows.
func (p *peer) services(t *testing.T, more string) []service {
	t.Helper()
	return p.must(t, "GetReservationDetails", details+more).Info.Description.Services
}

const (
	fresh    = "<disableCache>true</disableCache>"
	noOwner  = "<attributes />"
	addMutex = "AddServiceToReservation"
)

func owned(owner string) string {
	return "<attributes><AttributeNameValue><Name>Mutex Owner</Name>" + param("Value", owner) + "</AttributeNameValue></attributes>"
}

// mutex are the parameters that add the service MUTEX.
func mutex(attributes string) string { return adding(fakecloudshell.MutexModel, "MUTEX", attributes) }

func adding(model, alias, attributes string) string {
	return details + param("serviceName", model) + param("alias", alias) + attributes
}

func removing(aliases ...string) string {
	list := ""
	for _, alias := range aliases {
		list += param("string", alias)
	}
	return details + "<services>" + list + "</services>"
}

func aliases(services []fakecloudshell.Service) []string {
	names := []string{}
	for _, s := range services {
		names = append(names, s.Alias)
	}
	return names
}
