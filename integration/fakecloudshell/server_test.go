package fakecloudshell_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
)

func TestOptionsAreValidated(t *testing.T) {
	for name, opt := range map[string]fakecloudshell.Options{
		"all interfaces":  {Address: ":0"},
		"another host":    {Address: "192.0.2.1:0"},
		"a name":          {Address: "localhost:0"},
		"no port":         {Address: "127.0.0.1"},
		"a scheme":        {Scheme: "ftp"},
		"a lifetime":      {SessionLifetime: -1},
		"a user twice":    {Users: []fakecloudshell.User{{Name: "x"}, {Name: "x"}}},
		"a model twice":   {Models: []fakecloudshell.Model{fakecloudshell.PlainMutex(), fakecloudshell.OwnedMutex()}},
		"no model name":   {Models: []fakecloudshell.Model{{}}},
		"a reservation":   {Reservations: []fakecloudshell.Reservation{{ID: "a"}, {ID: "A"}}},
		"no id":           {Reservations: []fakecloudshell.Reservation{{}}},
		"a port in use":   {Address: busy(t)},
		"an unnamed user": {Users: []fakecloudshell.User{{Password: "x"}}},
	} {
		server, err := fakecloudshell.New(opt)
		require.ErrorContains(t, err, "fake CloudShell: ", name)
		require.Nil(t, server)
	}
	start(t, fakecloudshell.Options{})
	start(t, fakecloudshell.Options{Address: "[::1]:0", Scheme: fakecloudshell.HTTPS})
}

func busy(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}

func TestHTTPS(t *testing.T) {
	opt := basic()
	opt.Scheme = fakecloudshell.HTTPS
	server := start(t, opt)
	admin(t, server).services(t, fresh)

	strict := newPeer(t, server)
	strict.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}}
	_, err := strict.call(within(t), "Logoff", "")
	var unknown x509.UnknownAuthorityError
	require.ErrorAs(t, err, &unknown)

	plain := newPeer(t, server)
	plain.url = "http://" + server.Address()
	r, err := plain.post(within(t), "Logoff", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, r.Status)
	require.Equal(t, 1, len(server.Requests())-server.Count(fakecloudshell.GetDetails))
}

func TestTheCertificateInAFile(t *testing.T) {
	opt := basic()
	opt.Scheme = fakecloudshell.HTTPS
	server := start(t, opt)
	path := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, server.WriteCA(path))
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(text))
	p := newPeer(t, server)
	p.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	p.must(t, "Logon", credentials("bob", "bob", ""))

	require.Error(t, server.WriteCA(filepath.Join(path, "x")))
	without := start(t, basic())
	require.Nil(t, without.Pool())
	require.ErrorContains(t, without.WriteCA(path), "https")
}

func TestNoHTTP2(t *testing.T) {
	opt := basic()
	opt.Scheme = fakecloudshell.HTTPS
	server := start(t, opt)
	connection, err := tls.Dial("tcp", server.Address(), &tls.Config{RootCAs: server.Pool(), NextProtos: []string{"h2", "http/1.1"}})
	require.NoError(t, err)
	defer connection.Close()
	require.NotEqual(t, "h2", connection.ConnectionState().NegotiatedProtocol)
}

// Close waits for nobody, and leaves nothing behind that could still change anything.
func TestCloseEndsWhatWaits(t *testing.T) {
	forever := fakecloudshell.Pause{Until: make(chan struct{})}
	for name, fault := range map[string]fakecloudshell.Fault{
		"held":     {Hold: forever},
		"replying": {HoldReply: forever},
		"withheld": {Reply: fakecloudshell.Withheld},
		"endless":  {Reply: fakecloudshell.Endless},
		"late":     {Execute: fakecloudshell.OnceGone, Reply: fakecloudshell.Dropped, Later: time.Hour},
	} {
		server, err := fakecloudshell.New(basic())
		require.NoError(t, err)
		p := admin(t, server)
		server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fault}))
		failed := make(chan error)
		go func() {
			_, err := p.call(within(t), addMutex, mutex(noOwner))
			failed <- err
		}()
		require.NoError(t, server.Wait(within(t), fakecloudshell.Arrived(fakecloudshell.AddService, 1)))
		require.NoError(t, server.Close(), name)
		for _, r := range server.Requests() {
			require.True(t, r.Done, name)
		}
		require.Error(t, <-failed, name)
		before := len(server.Services(lab))
		require.Zero(t, server.Land(), name)
		require.Len(t, server.Services(lab), before, name)
		require.NoError(t, server.Close(), "once more")
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	server := start(t, basic())
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	require.ErrorIs(t, server.Wait(ctx, fakecloudshell.Arrived(fakecloudshell.Logon, 1)), cause)
}

func TestTheLog(t *testing.T) {
	var lines bytes.Buffer
	opt := basic()
	opt.Log = slog.New(slog.NewTextHandler(&lines, nil))
	server := start(t, opt)
	p := admin(t, server)
	p.services(t, fresh)
	server.Inject(fakecloudshell.Rules(fakecloudshell.Rule{Fault: fakecloudshell.Fault{Reply: fakecloudshell.Dropped}}))
	_, err := p.call(within(t), addMutex, mutex(noOwner))
	require.Error(t, err)
	require.NoError(t, server.Close())
	text := lines.String()
	require.Contains(t, text, "method=AddServiceToReservation user=admin status=0 executed=true")
	require.Contains(t, text, "method=GetReservationDetails user=admin status=200")
	require.NotContains(t, text, "s3cret")
	require.NotContains(t, text, p.token)
}

func TestRequestsAreCopies(t *testing.T) {
	server := start(t, basic())
	admin(t, server)
	requests := server.Requests()
	requests[0].Executed, requests[0].Body = false, "changed"
	require.True(t, server.Requests()[0].Executed)
	require.NotEqual(t, "changed", server.Requests()[0].Body)
	require.Equal(t, 1, server.Count(fakecloudshell.Logon))
	require.Zero(t, server.Count(fakecloudshell.AddService))
}
