package cloudshell_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/integration/fakecloudshell"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/cloudshell"
	"github.com/multilock/go/multilock/source"
)

// A session that has ended is replaced once, whichever way the server reports it.
func TestSessionThatEnds(t *testing.T) {
	for _, dead118 := range []bool{false, true} {
		opt := serverOptions()
		opt.Policy.DeadTokens118 = dead118
		l := newLab(t, opt)
		src := l.open(t)
		lock := try(t, src, "MUTEX", multilock.Options{})
		l.server.ExpireSessions()
		require.NoError(t, lock.Verify(t.Context()))
		l.server.ExpireSessions()
		release(t, lock)
	}
}

// The token of a command ends with the command. The error says so, and the client does not retry.
func TestCommandThatEnds(t *testing.T) {
	l := newLab(t, serverOptions())
	command, err := l.server.RunCommand("admin")
	require.NoError(t, err)
	l.opt.User, l.opt.Token = "", cloudshell.NewSecret(command.Token())
	lock := try(t, l.open(t), "MUTEX", multilock.Options{})
	command.End()
	var logons atomic.Int64
	l.server.Inject(func(c fakecloudshell.Call) fakecloudshell.Fault {
		if c.Method == fakecloudshell.SecureLogon {
			logons.Add(1)
		}
		return fakecloudshell.Fault{}
	})
	err = lock.Verify(t.Context())
	require.ErrorContains(t, err, "ends with the command")
	require.EqualValues(t, 1, logons.Load())
	require.Error(t, lock.Release(t.Context()))
}

func TestHTTPS(t *testing.T) {
	opt := serverOptions()
	opt.Scheme = fakecloudshell.HTTPS
	l := newLab(t, opt)
	_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.ErrorContains(t, err, "certificate", "verified by default")
	require.ErrorContains(t, err, "cafile=FILE")
	require.NotErrorIs(t, err, multilock.ErrUnsure)

	trusting := l.opt
	trusting.Insecure = true
	release(t, try(t, l.openWith(t, trusting), "MUTEX", multilock.Options{}))

	bad := l.opt
	bad.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	_, err = cloudshell.Open(bad)
	require.ErrorContains(t, err, "ca.pem")
	require.NoError(t, os.WriteFile(bad.CAFile, []byte("no certificate"), 0o600))
	_, err = cloudshell.Open(bad)
	require.ErrorIs(t, err, multilock.ErrInvalid)
	require.NoError(t, l.server.WriteCA(bad.CAFile))
	release(t, try(t, l.openWith(t, bad), "MUTEX", multilock.Options{}))
}

// The password is not sent without TLS unless the user asks for http. The error says what to do.
func TestHTTPIsAskedFor(t *testing.T) {
	l := newLab(t, serverOptions())
	l.opt.Scheme = ""
	_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.ErrorContains(t, err, "scheme=http")
	require.NotErrorIs(t, err, multilock.ErrUnsure)
	require.Zero(t, l.server.Count(fakecloudshell.Logon))
}

// A server that does not answer like CloudShell is an error, never a free lock.
func TestOtherServers(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html><body>hello</body></html>"))
		},
		"nothing":  func(http.ResponseWriter, *http.Request) {},
		"too much": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("<a/>", 9<<20))) },
	} {
		server := httptest.NewServer(answer)
		opt := cloudshell.Options{Server: strings.TrimPrefix(server.URL, "http://"), Scheme: "http", User: "admin", Reservation: sandbox}
		src, err := cloudshell.Open(opt)
		require.NoError(t, err)
		_, err = src.Names(t.Context())
		require.Error(t, err, name)
		_, err = multilock.TryAcquire(t.Context(), src, "MUTEX", multilock.Options{})
		require.Error(t, err, name)
		require.NoError(t, src.Close())
		server.Close()
	}
	require.Zero(t, elsewhere.Load(), "redirects are not followed")
}

// A server that never answers costs one timeout, and no more.
func TestServerThatHangs(t *testing.T) {
	l := newLab(t, serverOptions())
	l.opt.Timeout = 50 * time.Millisecond
	l.server.Inject(fakecloudshell.At("", 0, fakecloudshell.Fault{Reply: fakecloudshell.Withheld}))
	_, err := multilock.TryAcquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.ErrorContains(t, err, "deadline exceeded")
	l.server.Inject(nil)
}

// Without the server's clock, a holder counts as silent only for as long as a waiter has observed it.
func TestDeadHolderWithoutTheServersClock(t *testing.T) {
	t.Parallel()
	opt := serverOptions()
	opt.Policy.Without = []fakecloudshell.Method{fakecloudshell.GetTime}
	l := newLab(t, opt)
	c, err := l.open(t).Contend(t.Context(), "MUTEX", source.Claim{TTL: time.Second, Heartbeat: 100 * time.Millisecond}, multilock.StalePolicy{})
	require.NoError(t, err)
	_, err = c.Try(t.Context())
	require.NoError(t, err)
	require.Equal(t, source.Unknown, requireHeld(t, l.open(t), "MUTEX").Silence)
	lock, err := multilock.Acquire(t.Context(), l.open(t), "MUTEX", multilock.Options{})
	require.NoError(t, err)
	release(t, lock)
}

func TestExamine(t *testing.T) {
	l := newLab(t, serverOptions())
	for _, f := range l.open(t).Examine(t.Context()) {
		require.NotEqual(t, source.SeverityUnusable, f.Severity, f.Text)
	}
	l.opt.Password = cloudshell.NewSecret("wrong")
	findings := l.open(t).Examine(t.Context())
	require.Equal(t, source.SeverityUnusable, findings[len(findings)-1].Severity)
	guaranteed := map[source.Trait]bool{}
	for _, p := range l.open(t).Guarantees() {
		require.NotEmpty(t, p.Why, p.Trait)
		guaranteed[p.Trait] = true
	}
	require.Len(t, guaranteed, len(source.Traits()))
}
