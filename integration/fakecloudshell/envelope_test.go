package fakecloudshell_test

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const response = `<?xml version="1.0" encoding="utf-8"?>
<Response CommandName="AddServiceToReservation" Success="%" xmlns="http://schemas.qualisystems.com/ResourceManagement/ApiCommandResult.xsd" ` +
	`xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`

func TestTheBytesOfAnAnswer(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	r, err := p.call(within(t), addMutex, mutex(noOwner))
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(response, "%", "true")+"<ErrorCode>0</ErrorCode><ResponseInfo></ResponseInfo></Response>", r.Body)
	r, err = p.call(within(t), addMutex, mutex(noOwner))
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(response, "%", "false")+"<Error>"+taken+"</Error><ErrorCode>100</ErrorCode></Response>", r.Body)

	opt := basic()
	opt.Policy.NoEmptyInfo = true
	r = admin(t, start(t, opt)).must(t, addMutex, mutex(noOwner))
	require.NotContains(t, r.Body, "ResponseInfo")
}

// The Python clients fail over an xsi:type anywhere else, and the older one
// overlooks members of lists that have no attributes.
func TestWhatThePythonClientsNeed(t *testing.T) {
	server := start(t, basic())
	p := admin(t, server)
	p.must(t, addMutex, mutex(owned("x")))
	for method, call := range map[string]struct{ kind, parameters string }{
		"Logon":                 {"LogonResponseInfo", credentials("admin", "s3cret", "")},
		"SecureLogon":           {"LogonResponseInfo", param("token", p.token)},
		"GetReservationDetails": {"GetReservationDescriptionResponseInfo", details},
		"GetReservationStatus":  {"ReservationSlimStatusInfo", details},
		"GetSandboxData":        {"GetSandboxDataInfo", details},
		"GetServerDateAndTime":  {"ServerTimeInfo", ""},
		"GetServices":           {"ServicesListInfo", param("categoryName", "") + param("serviceName", "")},
	} {
		r := p.must(t, method, call.parameters)
		require.Equal(t, call.kind, r.Info.Type)
		checkElements(t, r.Body)
	}
}

func checkElements(t *testing.T, body string) {
	t.Helper()
	typed := 0
	for decoder := xml.NewDecoder(strings.NewReader(body)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		element, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range element.Attr {
			if a.Name.Local == "type" {
				require.Equal(t, "ResponseInfo", element.Name.Local)
				typed++
			}
		}
		if element.Name.Local == "Service" || element.Name.Local == "Attribute" {
			require.NotEmpty(t, element.Attr)
		}
	}
	require.Equal(t, 1, typed)
}

func TestEmptyListsAreThere(t *testing.T) {
	p := admin(t, start(t, basic()))
	r := p.must(t, "GetReservationDetails", details)
	require.Contains(t, r.Body, "<SetupStage>Ended</SetupStage><Services></Services>")
	require.Equal(t, "GetReservationDescriptionResponseInfo", r.Info.Type)
}

func TestHTTPAnswers(t *testing.T) {
	for _, closes := range []bool{false, true} {
		opt := basic()
		opt.Policy.CloseConnections = closes
		server := start(t, opt)
		p := admin(t, server)
		p.services(t, fresh)
		p.services(t, fresh)
		connections := map[string]bool{}
		for _, r := range server.Requests() {
			connections[r.Connection] = true
		}
		require.Len(t, connections, map[bool]int{false: 1, true: 3}[closes])
		answer, err := p.client.Post(p.url+"/ResourceManagerApiService/Logon", "text/xml", strings.NewReader(""))
		require.NoError(t, err)
		defer answer.Body.Close()
		require.Equal(t, closes, answer.Close)
		require.Equal(t, http.StatusBadRequest, answer.StatusCode)
		require.Equal(t, 1, answer.ProtoMinor)
	}
}

func TestContentType(t *testing.T) {
	r := admin(t, start(t, basic())).must(t, "Logoff", "")
	require.Equal(t, "text/xml; charset=utf-8", r.Type)
}
