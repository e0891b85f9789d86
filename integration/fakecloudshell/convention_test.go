package fakecloudshell_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/integration/fakecloudshell/convention"
	"github.com/multilock/go/multilock/locktest"
)

// playClient starts a script that takes the mutex of the lab as one of the clients.
func playClient(t *testing.T, server *fakecloudshell.Server, client string, more ...string) *locktest.Script {
	t.Helper()
	options := []string{"--reservation", lab, "--password", "s3cret", "--client", client}
	return convention.Start(t, server, slices.Concat(options, more)...)
}

func TestConventionTakesTurns(t *testing.T) {
	for _, client := range convention.Clients() {
		t.Run(client, func(t *testing.T) {
			server := start(t, basic())
			one, two := playClient(t, server, client), playClient(t, server, client, "--owner", "two")
			require.Equal(t, "acquired", one.Do("try"))
			require.Equal(t, "denied: CloudShell API error 100: "+taken, two.Do("try"))
			require.Equal(t, "held by somebody", two.Do("owner"))
			require.Equal(t, "released", one.Do("release"))
			require.Equal(t, "nobody", one.Do("owner"))
			require.Equal(t, "acquired", two.Do("acquire"))
			require.Equal(t, "held by two", one.Do("owner"))
			require.Equal(t, "released", two.Do("release"))
		})
	}
}

// Both clients' processes in one counter; without the mutex it comes out too low.
func TestConventionContends(t *testing.T) {
	const peers, rounds = 4, 10
	for _, policy := range []fakecloudshell.Policy{{}, {CloseConnections: true}} {
		opt := basic()
		opt.Policy = policy
		server := start(t, opt)
		path := filepath.Join(t.TempDir(), "counter")
		require.NoError(t, os.WriteFile(path, []byte("0"), 0o600))
		var all sync.WaitGroup
		answers := make([]string, peers)
		for i := range peers {
			s := playClient(t, server, convention.Clients()[i%2], "--attempts", "100000")
			all.Go(func() { answers[i] = s.Do(fmt.Sprintf("count %s %d", path, rounds)) })
		}
		all.Wait()
		require.Equal(t, []string{"counted", "counted", "counted", "counted"}, answers)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, strconv.Itoa(peers*rounds), string(text))
		require.Empty(t, server.Services(lab))
		require.Equal(t, peers*rounds, server.Count(fakecloudshell.RemoveServices))
	}
}

// The flaw: who waits too long goes on, and his release frees the other's lock.
func TestConventionGoesOnWithout(t *testing.T) {
	server := start(t, basic())
	one, two := playClient(t, server, "9.3"), playClient(t, server, "2024.1", "--attempts", "3")
	require.Equal(t, "acquired", one.Do("acquire"))
	require.Equal(t, "went on without", two.Do("acquire"))
	require.Equal(t, 4, server.Count(fakecloudshell.AddService))
	require.Equal(t, "released", two.Do("release"))
	require.Empty(t, server.Services(lab))
}

// The flaw: who gets no answer waits for himself. The newer client does so within
// one attempt.
func TestConventionLosesAReply(t *testing.T) {
	for _, client := range convention.Clients() {
		server := start(t, basic())
		s := playClient(t, server, client)
		server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{
			Method: fakecloudshell.AddService, Nth: 1, Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped},
		}))
		answer := s.Do("try")
		require.Len(t, server.Services(lab), 1)
		if client == "9.3" {
			require.Equal(t, 1, server.Count(fakecloudshell.AddService))
			require.NotContains(t, answer, taken)
		} else {
			require.Equal(t, 2, server.Count(fakecloudshell.AddService))
			require.Equal(t, "denied: CloudShell API error 100: "+taken, answer)
		}
	}
}

// The newer client logs on again by itself, the older one gives up.
func TestConventionWithADeadToken(t *testing.T) {
	server := start(t, basic())
	old, recent := playClient(t, server, "9.3"), playClient(t, server, "2024.1")
	for _, s := range []*locktest.Script{old, recent} {
		require.Equal(t, "nobody", s.Do("owner"))
	}
	server.ExpireSessions()
	require.Equal(t, "denied: HTTP Error 401: Unauthorized", old.Do("try"))
	require.Equal(t, "acquired", recent.Do("try"))
	require.Equal(t, 3, server.Count(fakecloudshell.Logon))
}

// The flaw: what the owner is compared with may be five seconds old, so that a
// service of another owner, long gone, makes one wait for oneself.
func TestConventionChecksTheOwnerInTheCache(t *testing.T) {
	opt := basic()
	opt.Now = newClock().Now // it stands still
	server := start(t, opt)
	one, two := playClient(t, server, "9.3", "--owner", "one"), playClient(t, server, "2024.1", "--owner", "two")
	require.Equal(t, "acquired", one.Do("try"))
	require.Equal(t, "released", one.Do("release"))
	require.Equal(t, "denied: somebody else added it at the same time", two.Do("try"))
	require.Equal(t, "held by two", one.Do("owner"))
}

func TestConventionOverHTTPSWithACommandsToken(t *testing.T) {
	for _, client := range convention.Clients() {
		opt := basic()
		opt.Scheme = fakecloudshell.HTTPS
		server := start(t, opt)
		command, err := server.RunCommand("ann")
		require.NoError(t, err)
		ca := filepath.Join(t.TempDir(), "ca.pem")
		require.NoError(t, server.WriteCA(ca))
		s := playClient(t, server, client, "--token", command.Token(), "--cafile", ca)
		require.Equal(t, "acquired", s.Do("try"))
		_, passed, _ := strings.Cut(server.Requests()[0].Header.Get("Authorization"), "Token=")
		require.Equal(t, map[string]string{"9.3": "REDACTED"}[client], passed, "only the older one sends the token twice")
		command.End()
		require.Contains(t, s.Do("release"), "denied")
		require.Equal(t, 1, server.Count(fakecloudshell.RemoveServices))
		unverified := playClient(t, server, client)
		require.Equal(t, "released", unverified.Do("release"))
	}
}

// The script sends what the genuine clients send.
func TestConventionsBytes(t *testing.T) {
	for _, client := range convention.Clients() {
		server := start(t, basic())
		s := playClient(t, server, client, "--owner", "é<&\">")
		require.Equal(t, "acquired", s.Do("try"))
		require.Equal(t, "released", s.Do("release"))
		requests := server.Requests()
		require.Len(t, requests, 4)
		require.Equal(t, "<Logon><username>admin</username><password>REDACTED</password><domainName>Global</domainName></Logon>", requests[0].Body)
		require.Equal(t, "<AddServiceToReservation><reservationId>"+lab+"</reservationId><serviceName>Mutex Service</serviceName><alias>MUTEX</alias>"+
			"<attributes><AttributeNameValue><Name>Mutex Owner</Name><Value>&#233;&lt;&amp;\"&gt;</Value></AttributeNameValue></attributes></AddServiceToReservation>", requests[1].Body)
		require.Equal(t, "<GetReservationDetails><reservationId>"+lab+"</reservationId><disableCache>false</disableCache></GetReservationDetails>", requests[2].Body)
		require.Equal(t, "<RemoveServicesFromReservation><reservationId>"+lab+"</reservationId><services><string>MUTEX</string></services></RemoveServicesFromReservation>", requests[3].Body)
		checkHeaders(t, client, requests)
	}
}

func checkHeaders(t *testing.T, client string, requests []fakecloudshell.Request) {
	t.Helper()
	connections := map[string]bool{}
	for i, r := range requests {
		connections[r.Connection] = true
		for name, want := range map[string]string{
			"Content-Type": "text/xml", "Accept": "*/*", "Clienttimezoneid": "UTC", "Datetimeformat": "MM/dd/yyyy HH:mm",
			"Connection": map[string]string{"9.3": "close"}[client],
		} {
			require.Equal(t, want, r.Header.Get(name), name)
		}
		machine, token, _ := strings.Cut(r.Header.Get("Authorization"), ";")
		require.Regexp(t, `^MachineName=.+:\d+$`, machine)
		require.Equal(t, map[bool]string{true: "Token=", false: "Token=REDACTED"}[i == 0], token)
		require.Equal(t, http.StatusOK, r.Status)
	}
	require.Len(t, connections, map[string]int{"9.3": 4, "2024.1": 1}[client])
}

// A list without members, and nothing to say, as the second version sends them.
func TestConventionsEmptyElements(t *testing.T) {
	server := start(t, basic())
	s := playClient(t, server, "2024.1")
	require.Equal(t, "acquired", s.Do("try"))
	require.Contains(t, server.Requests()[1].Body, "<alias>MUTEX</alias><attributes /></AddServiceToReservation>")
}
