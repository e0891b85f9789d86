package fakecloudshell

import (
	"bytes"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func bodies() []string {
	return []string{
		"", "<Logoff />", "\ufeff<Logoff/>", "<a>text<b/></a>", "<a", "<a/><b/>", "<!DOCTYPE a><a/>", "<a>&#x0;</a>",
		`<?xml version="1.0" encoding="utf-8"?><Logon><username>a</username><password>b&amp;c</password></Logon>`,
		"<SecureLogon><token><![CDATA[x]]></token><domainName>Global</domainName></SecureLogon>",
		"<AddServiceToReservation><reservationId>lab</reservationId><serviceName>Mutex Service</serviceName><alias>MUTEX</alias>" +
			"<attributes><AttributeNameValue><Name>Mutex Owner</Name><Value>x</Value></AttributeNameValue></attributes></AddServiceToReservation>",
		"<RemoveServicesFromReservation><reservationId>lab</reservationId><services><string>MUTEX</string></services></RemoveServicesFromReservation>",
		"<Logon><password>a</password><password>b<token>c</token></password></Logon>",
	}
}

// What is understood has its secrets where the parser says they are: without
// them, the rest is the same, and is understood in the same way.
func FuzzParseElement(f *testing.F) {
	for _, body := range bodies() {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		root, err := parseElement(body)
		public := redactBody(body, root)
		if err != nil {
			require.Nil(t, root)
			require.True(t, strings.HasPrefix(public, "("))
			return
		}
		again, err := parseElement([]byte(public))
		require.NoError(t, err, "%q became %q", body, public)
		require.Equal(t, shapeOf(root), shapeOf(again))
		again.walk(func(e *element) {
			require.True(t, !secret(e.name) || e.text == "" || e.text == redacted, "%q became %q", body, public)
		})
	})
}

// shapeOf is all of a tree but what is secret.
func shapeOf(e *element) string {
	if secret(e.name) {
		return "<" + e.name + ">"
	}
	var text strings.Builder
	text.WriteString("<" + e.name + ">" + e.text)
	for _, child := range e.children {
		text.WriteString(shapeOf(child))
	}
	return text.String() + "</>"
}

// Whatever is sent, the answer is one of the API or of HTTP, and nothing crashes.
func FuzzHandle(f *testing.F) {
	for _, body := range bodies() {
		for _, method := range []Method{Logon, SecureLogon, Logoff, AddService, RemoveServices, "x/../y"} {
			f.Add(string(method), "MachineName=x;Token=t", []byte(body))
		}
	}
	server, err := New(Options{
		Users: []User{{Name: "a", Admin: true}}, Models: []Model{OwnedMutex()}, Reservations: []Reservation{{ID: "lab"}},
	})
	require.NoError(f, err)
	f.Cleanup(func() { server.Close() })
	server.world.sessions["t"] = session{user: server.world.users["a"], domain: DefaultDomain, expires: server.world.now().AddDate(1, 0, 0)}
	f.Fuzz(func(t *testing.T, method, authorization string, body []byte) {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, pathPrefix, bytes.NewReader(body))
		request.URL.Path += method
		request.Header = http.Header{
			"Content-Type": {"text/xml"}, "Clienttimezoneid": {"UTC"}, "Datetimeformat": {"yyyy"}, "Authorization": {authorization},
		}
		recorder := httptest.NewRecorder()
		server.handle(recorder, request)
		switch recorder.Code {
		case http.StatusOK:
			require.NoError(t, xml.Unmarshal(recorder.Body.Bytes(), &struct{ XMLName xml.Name }{}))
			require.True(t, bytes.Contains(recorder.Body.Bytes(), []byte(newEnvelope("").Namespace)))
		case http.StatusBadRequest, http.StatusUnauthorized, http.StatusRequestEntityTooLarge:
		default:
			t.Fatalf("status %d", recorder.Code)
		}
	})
}
