package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

// insideVariable says that this process is to be the command.
const insideVariable = "MULTILOCK_FAKECLOUDSHELL_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(insideVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process is the command as a process of its own, on a free port.
type process struct {
	*exec.Cmd
	lines  *bufio.Scanner
	stderr bytes.Buffer
	url    string
}

func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.CommandContext(t.Context(), os.Args[0], append([]string{"-listen", "127.0.0.1:0"}, args...)...)}
	p.Env = append(os.Environ(), insideVariable+"=1")
	p.Stderr = &p.stderr
	output, err := p.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(output)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	require.True(t, p.lines.Scan(), "it prints its URL")
	p.url = p.lines.Text()
	return p
}

// end asks the command to end, and waits for it.
func (p *process) end(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.False(t, p.lines.Scan(), "there is nothing more to print")
	require.NoError(t, p.Wait(), "the exit code is 0")
}

func post(t *testing.T, client *http.Client, url, method, parameters, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/ResourceManagerApiService/"+method,
		strings.NewReader("<"+method+">"+parameters+"</"+method+">"))
	require.NoError(t, err)
	request.Header = http.Header{
		"Content-Type": {"text/xml"}, "Clienttimezoneid": {"UTC"}, "Datetimeformat": {"MM/dd/yyyy HH:mm"}, "Authorization": {"Token=" + token},
	}
	answer, err := client.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

const password = "<username>admin</username><password>admin</password>"

// token is that of an answer to a logon.
func token(t *testing.T, answer string) string {
	t.Helper()
	_, rest, found := strings.Cut(answer, `Token Token="`)
	require.True(t, found, answer)
	text, _, _ := strings.Cut(rest, `"`)
	return text
}

func TestServesUntilSIGTERM(t *testing.T) {
	p := launch(t, "-v")
	session := token(t, post(t, http.DefaultClient, p.url, "Logon", password, ""))
	add := "<reservationId>lab</reservationId><serviceName>Mutex Service</serviceName><alias>MUTEX</alias>" +
		"<attributes><AttributeNameValue><Name>Mutex Owner</Name><Value>me</Value></AttributeNameValue></attributes>"
	require.Contains(t, post(t, http.DefaultClient, p.url, "AddServiceToReservation", add, session), `Success="true"`)
	p.end(t)
	require.Contains(t, p.stderr.String(), "method=AddServiceToReservation user=admin status=200")
}

func TestHTTPSUsersDomainsAndCommands(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	p := launch(t, "-https", "-ca", ca, "-user", "ann:x:y", "-user", "root:z:admin", "-reservation", "r1:Blue", "-reservation", "r2",
		"-command", "ann", "-session", "1ns", "-model", "plain")
	require.True(t, strings.HasPrefix(p.url, "https://127.0.0.1:"))
	require.True(t, p.lines.Scan())
	name, admin, _ := strings.Cut(p.lines.Text(), " ")
	require.Equal(t, "adminAuthToken", name)
	text, err := os.ReadFile(ca)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	require.Contains(t, post(t, client, p.url, "Logon", "<username>ann</username><password>x:y</password><domainName>Blue</domainName>", ""), `IsAdmin="false"`)
	require.Contains(t, post(t, client, p.url, "Logon", "<username>root</username><password>z</password>", ""), `IsAdmin="true"`)
	session := token(t, post(t, client, p.url, "SecureLogon", "<token>"+admin+"</token><domainName>Blue</domainName>", ""))
	require.Contains(t, post(t, client, p.url, "GetReservationStatus", "<reservationId>r1</reservationId>", session), "not, or no longer, valid")
	p.end(t)
}

func TestEveryUserMayUseEveryReservation(t *testing.T) {
	opt, err := parse([]string{"-user", "ann:x", "-reservation", "r1:Blue", "-reservation", "r2"}, io.Discard)
	require.NoError(t, err)
	server, err := fakecloudshell.New(withFreePort(opt.server))
	require.NoError(t, err)
	defer server.Close()
	for id, domain := range map[string]string{"r1": "Blue", "r2": "Global"} {
		session := token(t, post(t, http.DefaultClient, server.URL(), "Logon", "<username>ann</username><password>x</password><domainName>"+domain+"</domainName>", ""))
		require.Contains(t, post(t, http.DefaultClient, server.URL(), "GetReservationStatus", "<reservationId>"+id+"</reservationId>", session), "Started")
	}
}

func withFreePort(opt fakecloudshell.Options) fakecloudshell.Options {
	opt.Address = ""
	return opt
}

func TestFaultsOfTheCommandLine(t *testing.T) {
	p := launch(t, "-fault", "Logon:2:lost", "-fault", "Logon:3:unavailable", "-fault", "Logoff:0:dropped")
	require.Contains(t, post(t, http.DefaultClient, p.url, "Logon", password, ""), "Token=")
	require.Contains(t, post(t, http.DefaultClient, p.url, "Logon", password, ""), "EOF")
	require.Equal(t, "Service Unavailable\n", post(t, http.DefaultClient, p.url, "Logon", password, ""))
	require.Contains(t, post(t, http.DefaultClient, p.url, "Logoff", "", ""), "EOF")
	p.end(t)
}

func TestModels(t *testing.T) {
	for text, want := range map[string]int{"owner": 1, "plain": 1, "none": 0} {
		opt, err := parse([]string{"-model", text, "-session", "3m"}, io.Discard)
		require.NoError(t, err)
		require.Len(t, opt.server.Models, want)
		require.Equal(t, 3*time.Minute, opt.server.SessionLifetime)
		if want > 0 {
			require.Len(t, opt.server.Models[0].Attributes, map[string]int{"owner": 1}[text])
		}
	}
}

func TestWrongUsage(t *testing.T) {
	for _, args := range [][]string{
		{"-nonsense"}, {"more"}, {"-user", "ann"}, {"-model", "x"}, {"-session", "5"}, {"-fault", "Logon:1"}, {"-fault", "Logon:-1:lost"},
		{"-fault", "Logon:1:x"}, {"-fault", "Login:1:lost"}, {"-listen", "0.0.0.0:0"}, {"-reservation", "a", "-reservation", "a", "-listen", "127.0.0.1:0"},
		{"-ca", "x", "-listen", "127.0.0.1:0"}, {"-command", "nobody", "-listen", "127.0.0.1:0"}, {"-https", "-ca", "/none/x", "-listen", "127.0.0.1:0"},
	} {
		var out, errors bytes.Buffer
		require.Error(t, run(t.Context(), args, &out, &errors), args)
		require.Empty(t, errors.String(), "main tells the error, once")
	}
}

func TestHelp(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-help")
	cmd.Env = append(os.Environ(), insideVariable+"=1")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(text), "usage: fakecloudshell [flags]")
	require.Contains(t, string(text), "dropped, endless, failed, late, lost, slow, torn, unavailable, withheld")
	require.Equal(t, 1, strings.Count(string(text), "-reservation id[:domain]"))
}
