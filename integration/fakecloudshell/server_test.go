package fakecloudshell_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/integration/fakecloudshell/convention"
)

const lab = "5c1e0b3a-77f2-4c0d-9c56-0f0d4a9b2e11"

func options() fakecloudshell.Options {
	return fakecloudshell.Options{
		Users:        []fakecloudshell.User{{Name: "admin", Password: "s3cret", Admin: true}},
		Models:       []fakecloudshell.Model{fakecloudshell.OwnedMutex()},
		Reservations: []fakecloudshell.Reservation{{ID: lab}},
	}
}

// The parameters of calls.
const (
	logon       = "<username>admin</username><password>s3cret</password>"
	reservation = "<reservationId>" + lab + "</reservationId>"
	fresh       = reservation + "<disableCache>true</disableCache>"
	service     = reservation + "<serviceName>Mutex Service</serviceName><alias>MUTEX</alias>"
	owner       = "<attributes><AttributeNameValue><Name>Mutex Owner</Name><Value>me</Value></AttributeNameValue></attributes>"
)

// peer is an independent client, written for these tests.
type peer struct {
	server *fakecloudshell.Server
	token  string
}

// post sends a request and returns the status, the reply and the error.
func (p *peer) post(t *testing.T, method, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.server.URL()+"/ResourceManagerApiService/"+method, strings.NewReader(body))
	require.NoError(t, err)
	request.Header = http.Header{
		"Content-Type": {"text/xml"}, "Clienttimezoneid": {"UTC"}, "Datetimeformat": {"MM/dd/yyyy HH:mm"}, "Authorization": {"MachineName=x;Token=" + p.token},
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprint(answer.StatusCode, " ", string(text), " ", err)
}

func (p *peer) call(t *testing.T, method fakecloudshell.Method, parameters string) string {
	t.Helper()
	return p.post(t, string(method), fmt.Sprintf("<%s>%s</%[1]s>", method, parameters))
}

// admin returns a peer with a session.
func admin(t *testing.T, server *fakecloudshell.Server) *peer {
	t.Helper()
	p := &peer{server: server}
	p.logOn(t, fakecloudshell.Logon, logon)
	return p
}

func (p *peer) logOn(t *testing.T, method fakecloudshell.Method, parameters string) {
	t.Helper()
	answer := p.call(t, method, parameters)
	_, rest, found := strings.Cut(answer, `<Token Token="`)
	require.True(t, found, answer)
	p.token, _, _ = strings.Cut(rest, `"`)
}

const success = `Success="true"`

// TestFaults checks what the client and the server see of each fault. The sweeps of
// integration/cloudshell rely on it.
func TestFaults(t *testing.T) {
	type fault = fakecloudshell.Fault
	closed := make(chan struct{})
	close(closed)
	for name, c := range map[string]struct {
		fault
		seen        string
		there, late int
	}{
		"none":        {fault{}, success, 1, 0},
		"held":        {fault{Hold: closed}, success, 1, 0},
		"lost":        {fault{Reply: fakecloudshell.Dropped}, "EOF", 1, 0},
		"dropped":     {fault{Execute: fakecloudshell.Never, Reply: fakecloudshell.Dropped}, "EOF", 0, 0},
		"late":        {fault{Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped}, "EOF", 0, 1},
		"torn":        {fault{Reply: fakecloudshell.Torn}, "unexpected EOF", 1, 0},
		"failed":      {fault{Status: 500}, "500 Internal Server Error", 1, 0},
		"unavailable": {fault{Execute: fakecloudshell.Never, Status: 503}, "503 Service Unavailable", 0, 0},
		"lied":        {fault{Execute: fakecloudshell.Never}, success, 0, 0},
		"denied":      {fault{Failure: &fakecloudshell.Failure{Code: 7, Message: "busy"}}, "<Error>busy</Error><ErrorCode>7</ErrorCode>", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakecloudshell.Start(t, options())
			p := admin(t, server)
			server.Inject(fakecloudshell.At(fakecloudshell.AddService, 1, c.fault))
			require.Contains(t, p.call(t, fakecloudshell.AddService, service+owner), c.seen)
			require.Equal(t, 1, server.Count(fakecloudshell.AddService), "a client that sends it twice would hide the fault")
			require.Len(t, server.Services(lab), c.there)
			server.ExpireSessions() // a late request was accepted before
			require.Equal(t, c.late, server.Land())
			require.Zero(t, server.Land(), "only once")
			require.Len(t, server.Services(lab), c.there+c.late)
		})
	}
}

// The server accepts only what the genuine clients send.
func TestRequestsAreCheckedStrictly(t *testing.T) {
	server := fakecloudshell.Start(t, options())
	p := admin(t, server)
	for _, c := range []struct{ method, body, want string }{
		{"AddServiceToReservation", service, "attributes is missing"},
		{"AddServiceToReservation", service + owner + "<more/>", "more is unknown"},
		{"AddServiceToReservation", reservation + "<alias>MUTEX</alias><serviceName>Mutex Service</serviceName>" + owner, "out of order"},
		{"AddServiceToReservation", service + "<attributes><string>x</string></attributes>", "no AttributeNameValue"},
		{"AddServiceToReservation", service + strings.Replace(owner, "Owner", "Other", 1), "no attribute"},
		{"RemoveServicesFromReservation", reservation + "<services><alias>x</alias></services>", "instead of string"},
		{"RemoveServicesFromReservation", reservation + "<services><string>x</string></services>", "no service with this alias"},
		{"GetReservationDetails", reservation + "<disableCache>True</disableCache>", "instead of true or false"},
		{"GetReservationDetails", "<reservationId>other</reservationId>", "No reservation"},
		{"Nonsense", "", "<ErrorCode>101</ErrorCode>"},
		{"Logon", "<username>admin</username><password>wrong</password>", "<ErrorCode>118</ErrorCode>"},
	} {
		require.Contains(t, p.post(t, c.method, "<"+c.method+">"+c.body+"</"+c.method+">"), c.want)
	}
	for _, body := range []string{"", "text", "<GetReservationDetails>", "<Other/>"} {
		require.Contains(t, p.post(t, "GetReservationDetails", body), "400 ", body)
	}
	require.Empty(t, server.Services(lab))
}

func TestDetailsAreCached(t *testing.T) {
	for _, c := range []struct {
		policy       fakecloudshell.Policy
		usual, fresh bool // whether a service that was just added is listed
	}{
		{fakecloudshell.Policy{CacheFor: time.Hour}, false, true},
		{fakecloudshell.Policy{CacheFor: -1}, true, true},
		{fakecloudshell.Policy{CacheFor: time.Hour, IgnoreDisableCache: true}, false, false},
	} {
		opt := options()
		opt.Policy = c.policy
		p := admin(t, fakecloudshell.Start(t, opt))
		p.call(t, fakecloudshell.GetDetails, reservation)
		require.Contains(t, p.call(t, fakecloudshell.AddService, service+owner), success)
		require.Equal(t, c.usual, strings.Contains(p.call(t, fakecloudshell.GetDetails, reservation), "MUTEX"), "%+v", c.policy)
		require.Equal(t, c.fresh, strings.Contains(p.call(t, fakecloudshell.GetDetails, fresh), "MUTEX"), "%+v", c.policy)
	}
}

// The script that plays the neighbour sends exactly what the genuine clients send, and nothing twice,
// except when it plays the client that does so.
func TestConventionsBytes(t *testing.T) {
	for _, client := range convention.Clients() {
		server := fakecloudshell.Start(t, options())
		var mu sync.Mutex
		var bodies []string
		server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
			mu.Lock()
			defer mu.Unlock()
			bodies = append(bodies, c.Body)
			return fakecloudshell.Fault{}
		})
		s := convention.Start(t, server, "--reservation", lab, "--password", "s3cret", "--client", client, "--owner", "é<&\">")
		require.Equal(t, "acquired", s.Do("try"))
		require.Equal(t, "released", s.Do("release"))
		require.Equal(t, []string{
			"<Logon>" + logon + "<domainName>Global</domainName></Logon>",
			"<AddServiceToReservation>" + service + strings.Replace(owner, ">me<", `>&#233;&lt;&amp;"&gt;<`, 1) + "</AddServiceToReservation>",
			"<GetReservationDetails>" + reservation + "<disableCache>false</disableCache></GetReservationDetails>",
			"<RemoveServicesFromReservation>" + reservation + "<services><string>MUTEX</string></services></RemoveServicesFromReservation>",
		}, bodies)
	}
}
