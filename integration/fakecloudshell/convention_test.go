package fakecloudshell_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// snake is a process that keeps to the convention. See testdata/convention.py for
// what it can be told.
type snake struct {
	input  io.WriteCloser
	output *bufio.Scanner
	log    *bytes.Buffer
}

// clients are the two that the script can play.
func clients() []string { return []string{"9.3", "2024.1"} }

func newSnake(t *testing.T, server *fakecloudshell.Server, client string, more ...string) *snake {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 on this machine: nobody can play the convention's client")
	}
	cmd := exec.CommandContext(t.Context(), python, append([]string{"testdata/convention.py", "--url", server.URL(), "--reservation", lab,
		"--client", client, "--password", "s3cret", "--pause", "0", "0.01", "--resend", "0.001"}, more...)...)
	s := &snake{log: &bytes.Buffer{}}
	cmd.Stderr = s.log
	s.input, err = cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	s.output = bufio.NewScanner(output)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		s.input.Close() // its end is that of its input
		_ = cmd.Wait()
	})
	return s
}

func (s *snake) do(t *testing.T, format string, args ...any) string {
	t.Helper()
	_, err := fmt.Fprintf(s.input, format+"\n", args...)
	require.NoError(t, err)
	if !s.output.Scan() {
		require.Fail(t, "the Python process ended without an answer")
	}
	return s.output.Text()
}

func TestConventionTakesTurns(t *testing.T) {
	for _, client := range clients() {
		t.Run(client, func(t *testing.T) {
			server := start(t, basic())
			one, two := newSnake(t, server, client), newSnake(t, server, client, "--owner", "two")
			require.Equal(t, "acquired", one.do(t, "try"))
			require.Equal(t, "denied: CloudShell API error 100: "+taken, two.do(t, "try"))
			require.Equal(t, "held by somebody", two.do(t, "owner"))
			require.Equal(t, "released", one.do(t, "release"))
			require.Equal(t, "nobody", one.do(t, "owner"))
			require.Equal(t, "acquired", two.do(t, "acquire"))
			require.Equal(t, "held by two", one.do(t, "owner"))
			require.Equal(t, "released", two.do(t, "release"))
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
			s := newSnake(t, server, clients()[i%2], "--attempts", "100000")
			all.Go(func() { answers[i] = s.do(t, "count %s %d", path, rounds) })
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
	one, two := newSnake(t, server, "9.3"), newSnake(t, server, "2024.1", "--attempts", "3")
	require.Equal(t, "acquired", one.do(t, "acquire"))
	require.Equal(t, "went on without", two.do(t, "acquire"))
	require.Equal(t, 4, server.Count(fakecloudshell.AddService))
	require.Equal(t, "released", two.do(t, "release"))
	require.Empty(t, server.Services(lab))
}

// The flaw: who gets no answer waits for himself. The newer client does so within
// one attempt.
func TestConventionLosesAReply(t *testing.T) {
	for _, client := range clients() {
		server := start(t, basic())
		s := newSnake(t, server, client)
		server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{
			Method: fakecloudshell.AddService, Nth: 1, Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped},
		}))
		answer := s.do(t, "try")
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
	old, recent := newSnake(t, server, "9.3"), newSnake(t, server, "2024.1")
	for _, s := range []*snake{old, recent} {
		require.Equal(t, "nobody", s.do(t, "owner"))
	}
	server.ExpireSessions()
	require.Equal(t, "denied: HTTP Error 401: Unauthorized", old.do(t, "try"))
	require.Equal(t, "acquired", recent.do(t, "try"))
	require.Equal(t, 3, server.Count(fakecloudshell.Logon))
}

// The flaw: what the owner is compared with may be five seconds old, so that a
// service of another owner, long gone, makes one wait for oneself.
func TestConventionChecksTheOwnerInTheCache(t *testing.T) {
	opt := basic()
	opt.Now = newClock().Now // it stands still
	server := start(t, opt)
	one, two := newSnake(t, server, "9.3", "--owner", "one"), newSnake(t, server, "2024.1", "--owner", "two")
	require.Equal(t, "acquired", one.do(t, "try"))
	require.Equal(t, "released", one.do(t, "release"))
	require.Equal(t, "denied: somebody else added it at the same time", two.do(t, "try"))
	require.Equal(t, "held by two", one.do(t, "owner"))
}

func TestConventionOverHTTPSWithACommandsToken(t *testing.T) {
	for _, client := range clients() {
		opt := basic()
		opt.Scheme = fakecloudshell.HTTPS
		server := start(t, opt)
		command, err := server.RunCommand("ann")
		require.NoError(t, err)
		ca := filepath.Join(t.TempDir(), "ca.pem")
		require.NoError(t, server.WriteCA(ca))
		s := newSnake(t, server, client, "--token", command.Token(), "--cafile", ca)
		require.Equal(t, "acquired", s.do(t, "try"))
		_, passed, _ := strings.Cut(server.Requests()[0].Header.Get("Authorization"), "Token=")
		require.Equal(t, map[string]string{"9.3": "REDACTED"}[client], passed, "only the older one sends the token twice")
		command.End()
		require.Contains(t, s.do(t, "release"), "denied")
		require.Equal(t, 1, server.Count(fakecloudshell.RemoveServices))
		unverified := newSnake(t, server, client)
		require.Equal(t, "released", unverified.do(t, "release"))
	}
}

// The script sends what the genuine clients send.
func TestConventionsBytes(t *testing.T) {
	for _, client := range clients() {
		server := start(t, basic())
		s := newSnake(t, server, client, "--owner", "é<&\">")
		require.Equal(t, "acquired", s.do(t, "try"))
		require.Equal(t, "released", s.do(t, "release"))
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
	s := newSnake(t, server, "2024.1")
	require.Equal(t, "acquired", s.do(t, "try"))
	require.Contains(t, server.Requests()[1].Body, "<alias>MUTEX</alias><attributes /></AddServiceToReservation>")
}
