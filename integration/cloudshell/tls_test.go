package cloudshell_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
)

// rude starts a server that reads one request and sends a fixed answer, or none if answer is "". It
// returns the server's address.
func rude(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = bufio.NewReader(conn).ReadByte()
				_, _ = conn.Write([]byte(answer))
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// A client that uses HTTP with an HTTPS server, or vice versa, gets an error that says so. The error
// for a self-signed certificate names both remedies.
func TestSchemesThatDoNotMeet(t *testing.T) {
	opt := serverOptions()
	opt.Scheme = fakecloudshell.HTTPS
	secure := newLab(t, opt).server.Address()
	const leave, add = "leave scheme=http out", "add scheme=http"
	for name, test := range map[string]struct {
		scheme, address, want string
	}{
		"HTTP to a server that says HTTPS":     {"http", secure, leave},
		"HTTP to a server that hangs up":       {"http", rude(t, ""), leave},
		"HTTP to a server that sends an alert": {"http", rude(t, "\x15\x03\x01\x00\x02\x02\x0a"), leave},
		"HTTPS to a server with HTTP":          {"https", newLab(t, serverOptions()).server.Address(), add},
		"HTTPS to a server that knows neither": {"https", rude(t, "hello, who is there?\n"), add},
		"HTTPS with a self-signed certificate": {"https", secure, "cafile=FILE, or add insecure=true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, serverOptions())
			l.opt.Scheme, l.opt.Server = test.scheme, test.address
			_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
			require.ErrorContains(t, err, test.want)
			require.NotErrorIs(t, err, multilock.ErrUnsure)
		})
	}
}

// Naming the issuer does not help if the certificate is for another name.
func TestCertificateOfAnotherName(t *testing.T) {
	opt := serverOptions()
	opt.Scheme = fakecloudshell.HTTPS
	l := newLab(t, opt)
	l.opt.CAFile = t.TempDir() + "/ca.pem"
	require.NoError(t, l.server.WriteCA(l.opt.CAFile))
	l.opt.Server = strings.Replace(l.server.Address(), "127.0.0.1", "localhost", 1)
	_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.ErrorContains(t, err, "write the server's name as its certificate has it")
	require.NotContains(t, err.Error(), "cafile")
}

// A server that answers 400 for another reason is not taken for an HTTPS server.
func TestBadRequestIsNoHTTPS(t *testing.T) {
	l := newLab(t, serverOptions())
	l.opt.Server = rude(t, "HTTP/1.1 400 "+http.StatusText(http.StatusBadRequest)+"\r\nContent-Length: 4\r\nConnection: close\r\n\r\nno!\n")
	src, err := cloudshell.Open(l.opt)
	require.NoError(t, err)
	_, err = src.Names(t.Context())
	require.ErrorContains(t, err, "400")
	require.NotContains(t, err.Error(), "HTTPS")
}
