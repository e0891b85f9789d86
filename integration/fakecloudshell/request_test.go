package fakecloudshell_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// Each form is one that a genuine client sends, or may send.
func TestBodiesThatAreUnderstood(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	for name, body := range map[string]string{
		"9.3 and 2024.1":    `<AddServiceToReservation><reservationId>` + lab + `</reservationId><serviceName>Plain</serviceName><alias>%</alias><attributes /></AddServiceToReservation>`,
		"with line breaks":  "<AddServiceToReservation>\n<reservationId>" + lab + "</reservationId>\n<serviceName>Plain</serviceName>\n<alias>%</alias>\n<attributes>\n</attributes>\n</AddServiceToReservation>\n",
		"with declaration":  `<?xml version="1.0" encoding="UTF-8"?><AddServiceToReservation>` + adding("Plain", "%", noOwner) + `</AddServiceToReservation>`,
		"with mark":         "\ufeff<AddServiceToReservation>" + adding("Plain", "%", noOwner) + `</AddServiceToReservation>`,
		"with comment":      `<AddServiceToReservation><!-- x -->` + adding("Plain", "%", noOwner) + `</AddServiceToReservation>`,
		"GUID in capitals":  `<AddServiceToReservation><reservationId>` + strings.ToUpper(lab) + `</reservationId><serviceName>Plain</serviceName><alias>%</alias><attributes /></AddServiceToReservation>`,
		"character section": `<AddServiceToReservation>` + details + `<serviceName><![CDATA[Plain]]></serviceName><alias>%</alias><attributes /></AddServiceToReservation>`,
	} {
		alias := strings.ReplaceAll(name, " ", "-")
		r, err := p.post(within(t), "AddServiceToReservation", strings.ReplaceAll(body, "%", alias))
		require.NoError(t, err)
		require.Contains(t, r.Body, `Success="true"`, name)
		require.Contains(t, aliases(server.Services(lab)), alias)
	}
}

func TestThePathIsInAnyCase(t *testing.T) {
	p := admin(t, start(t, basic()))
	post := func(path string) int {
		request, err := p.request(within(t), path, "<GetReservationDetails>"+details+"</GetReservationDetails>")
		require.NoError(t, err)
		answer, err := p.client.Do(request)
		require.NoError(t, err)
		answer.Body.Close()
		return answer.StatusCode
	}
	require.Equal(t, http.StatusOK, post("/ResourceManagerAPIService/GetReservationDetails"))
	require.Equal(t, http.StatusOK, post("/resourcemanagerapiservice/getreservationdetails"))
	require.Equal(t, http.StatusNotFound, post("//ResourceManagerApiService/GetReservationDetails"))
	require.Equal(t, http.StatusNotFound, post("/GetReservationDetails"))
}

// The older Python client spells header names like this, and so does net/http.
func TestHeaderNamesAreInAnyCase(t *testing.T) {
	p := admin(t, start(t, basic()))
	p.header = http.Header{
		"ClientTimeZoneId": nil, "Clienttimezoneid": {"UTC"}, "DateTimeFormat": nil, "Datetimeformat": {"MM/dd/yyyy HH:mm"},
		"Authorization": nil, "authorization": {"Token=" + p.token}, "Content-Type": nil, "content-type": {"text/xml"},
	}
	p.services(t, fresh)
}

func TestParametersAreCheckedStrictly(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	for name, call := range map[string][2]string{
		"missing":            {addMutex, details + param("serviceName", "Plain") + param("alias", "x")},
		"out of order":       {addMutex, details + param("alias", "x") + param("serviceName", "Plain") + noOwner},
		"unknown":            {addMutex, adding("Plain", "x", noOwner) + param("more", "x")},
		"repeated":           {addMutex, details + adding("Plain", "x", noOwner)},
		"case":               {"GetReservationDetails", param("reservationID", lab)},
		"not a bool":         {"GetReservationDetails", details + "<disableCache>True</disableCache>"},
		"not strings":        {"RemoveServicesFromReservation", details + "<services><alias>x</alias></services>"},
		"structure in list":  {"RemoveServicesFromReservation", details + "<services><string><a/></string></services>"},
		"not a structure":    {addMutex, adding("Plain", "x", "<attributes><string>x</string></attributes>")},
		"members' order":     {addMutex, mutex("<attributes><AttributeNameValue><Value>x</Value><Name>Mutex Owner</Name></AttributeNameValue></attributes>")},
		"nothing for Logoff": {"Logoff", param("session", "x")},
	} {
		require.Equal(t, 100, p.refused(t, call[0], call[1]).Code, name)
	}
	require.Empty(t, server.Services(lab))
	require.Len(t, server.Requests(), 12)
	for _, r := range server.Requests()[1:] {
		require.Equal(t, 100, r.Failure.Code)
	}
	p.must(t, "RemoveServicesFromReservation", details+"<services />")
	p.must(t, addMutex, mutex("<attributes><AttributeNameValue><Name>Mutex Owner</Name></AttributeNameValue></attributes>"))
}

func TestRequestsThatAreNoCalls(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	post := func(header http.Header, body string) int {
		p.header = header
		defer func() { p.header = nil }()
		r, err := p.post(within(t), "GetReservationDetails", body)
		require.NoError(t, err)
		return r.Status
	}
	good := "<GetReservationDetails>" + details + "</GetReservationDetails>"
	require.Equal(t, 200, post(nil, good))
	for _, body := range []string{
		"", "text", "<GetReservationDetails>", "<GetReservationStatus>" + details + "</GetReservationStatus>",
		"<a/><b/>", "<a/>text", "<GetReservationDetails>text" + details + "</GetReservationDetails>",
		"<!DOCTYPE x><GetReservationDetails>" + details + "</GetReservationDetails>",
		strings.Repeat("<a>", 100) + strings.Repeat("</a>", 100), "<a>\xff</a>", "<a>&#x0;</a>",
		`<?xml version="1.0" encoding="utf-16"?>` + good,
	} {
		require.Equal(t, http.StatusBadRequest, post(nil, body), body)
	}
	require.Equal(t, http.StatusBadRequest, post(http.Header{"Clienttimezoneid": nil, "ClientTimeZoneId": nil}, good))
	require.Equal(t, http.StatusBadRequest, post(http.Header{"DateTimeFormat": nil}, good))
	require.Equal(t, http.StatusUnsupportedMediaType, post(http.Header{"Content-Type": {"application/xml"}}, good))
	require.Equal(t, http.StatusRequestEntityTooLarge, post(nil, good+strings.Repeat(" ", 1<<20)))
	for _, r := range server.Requests()[2:] {
		require.False(t, r.Executed)
		require.Nil(t, r.Failure)
	}
}

func TestOtherHTTPMethodsAndChunkedBodies(t *testing.T) {
	server := start(t, basic())
	p := newPeer(t, server)
	url := p.url + "/ResourceManagerApiService/Logon"
	answer, err := p.client.Get(url)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode)
	chunked := struct{ *strings.Reader }{strings.NewReader("<Logon/>")} // its length cannot be known
	answer, err = p.client.Post(url, "text/xml", chunked)
	require.NoError(t, err)
	answer.Body.Close()
	require.Equal(t, http.StatusLengthRequired, answer.StatusCode)
}

// A request that breaks off is none, though what came of it would be one.
func TestARequestThatBreaksOff(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	connection, err := net.Dial("tcp", server.Address())
	require.NoError(t, err)
	defer connection.Close()
	body := "<AddServiceToReservation>" + mutex(noOwner) + "</AddServiceToReservation>"
	_, err = fmt.Fprintf(connection, "POST /ResourceManagerApiService/AddServiceToReservation HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n"+
		"ClientTimeZoneId: UTC\r\nDateTimeFormat: x\r\nAuthorization: Token=%s\r\nContent-Length: %d\r\n\r\n%s", p.token, len(body)+1, body)
	require.NoError(t, err)
	require.NoError(t, connection.(*net.TCPConn).CloseWrite())
	require.NoError(t, server.Wait(within(t), func(log []fakecloudshell.Request) bool { return len(log) == 2 && log[1].Done }))
	require.False(t, server.Requests()[1].Executed)
	require.Empty(t, server.Services(lab))
}

// What the log has is what was sent, but for the secrets.
func TestSecretsAreNotLogged(t *testing.T) {
	server := start(t, basic())
	p := newPeer(t, server)
	const secret = "Hunter2"
	for _, body := range []string{
		"<Logon><username>x</username><password>Hunter2</password><domainName /></Logon>",
		"<Logon><username>x</username><password ><![CDATA[Hunter2]]></password><domainName /></Logon>",
		"\ufeff<Logon><username>é</username><Password>Hunter2</Password></Logon>",
		"<Logon><x><token>Hunter2</token></x><password>a<b>Hunter2</b></password></Logon>",
		"<Logon><password>Hunter2", "<Logon><password>Hunter2</Logon>",
	} {
		p.header = http.Header{"Authorization": {"Hunter2;Token=Hunter2;Password = Hunter2;MachineName=me"}}
		_, err := p.post(within(t), "Logon", body)
		require.NoError(t, err)
	}
	for _, r := range server.Requests() {
		require.NotContains(t, r.Body, secret)
		require.Equal(t, "REDACTED;Token=REDACTED;Password =REDACTED;MachineName=me", r.Header.Get("Authorization"))
	}
	first := server.Requests()[0]
	require.Equal(t, "<Logon><username>x</username><password>REDACTED</password><domainName /></Logon>", first.Body)
	require.Equal(t, fakecloudshell.Logon, first.Method)
	p.header = http.Header{"Authorization": {"MachineName=me;Token="}}
	_, err := p.post(within(t), "Logon", "<Logon><username>x</username><password></password></Logon>")
	require.NoError(t, err)
	requests := server.Requests()
	last := requests[len(requests)-1]
	require.Equal(t, "MachineName=me;Token=", last.Header.Get("Authorization"))
	require.Contains(t, last.Body, "<password></password>")
}
