package cloudshell

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

const script = `QUALICONNECTIVITYCONTEXT={"serverAddress":"quali","tsAPIPort":"8028","adminUser":"LAB\admin","adminPass":"pw","adminAuthToken":"tok==","tsAPIScheme":"https"}`

func TestLocate(t *testing.T) {
	l, err := Locate("cloudshell://ann@quali.example:9029/7b3c?domain=Lab&alias=PORTS&model=My+Mutex&attribute=Who&group=g&scheme=https&cafile=/ca.pem&timeout=5s&pause=1s-3s", nil)
	require.NoError(t, err)
	require.Equal(t, Location{Name: "PORTS", Options: Options{
		Server: "quali.example:9029", User: "ann", Reservation: "7b3c", Domain: "Lab", Model: "My Mutex", Attribute: "Who", Group: "g", Scheme: "https", CAFile: "/ca.pem",
		Timeout: 5 * time.Second, Pause: Pause{time.Second, 3 * time.Second},
	}}, l)
	l, err = Locate("cloudshell://ann:p%40ss@quali/7b3c", nil)
	require.NoError(t, err)
	require.Equal(t, "p@ss", l.Password.reveal())
	opt, err := l.check()
	require.NoError(t, err)
	require.Equal(t, "quali:8029", opt.Server)
	require.Equal(t, "https", opt.Scheme, "without TLS only where that is asked for")
}

func TestLocateRefuses(t *testing.T) {
	for _, text := range []string{
		"http://quali/7b3c", "cloudshell:quali", "cloudshell://q:secret@%zz/7b3c", "cloudshell://ann:secret@quali/7b3c?alais=X", "cloudshell://ann:secret@quali/7b3c?alias=",
		"cloudshell://ann:secret@quali/7b3c?pause=5s-2s", "cloudshell://ann:secret@quali/7b3c?insecure=perhaps", "cloudshell://ann:secret@quali/7b3c#x", "cloudshell://ann:secret@quali/7b3c?alias=a&alias=b",
		"cloudshell://ann@quali/7b3c?proxy=http://ada:secret@proxy;alias=x",
	} {
		_, err := Locate(text, nil)
		require.ErrorIs(t, err, source.ErrInvalid, text)
		require.NotContains(t, err.Error(), "secret", text)
	}
}

func TestLocateFromContexts(t *testing.T) {
	for name, reservation := range map[string]string{
		"upper case":        `RESERVATIONCONTEXT={"id":"7b3c","domain":"Lab"}`,
		"mixed case":        `reservationContext={"id":"7b3c","domain":"Lab","description":"C:\temp"}`,
		"setup or teardown": `reservationLifecycleContext={"reservationId":"7b3c"}`,
	} {
		l, err := Locate("cloudshell:", []string{"PATH=/bin", script, reservation})
		require.NoError(t, err, name)
		require.Equal(t, "quali", l.Server, "and not the port of another API")
		require.Equal(t, "7b3c", l.Reservation, name)
		require.Equal(t, "https", l.Scheme)
		require.Equal(t, "tok==", l.Token.reveal())
		require.Equal(t, `LAB\admin`, l.User)
		_, err = l.check()
		require.NoError(t, err)
	}
}

// A server's token is not sent to another server, and not used if the URL names a user.
func TestContextsAreForTheirOwnServer(t *testing.T) {
	l, err := Locate("cloudshell://elsewhere/7b3c", []string{script})
	require.NoError(t, err)
	require.True(t, l.Token.IsZero())
	require.Empty(t, l.User)
	_, err = Open(l.Options)
	require.ErrorIs(t, err, source.ErrInvalid)

	l, err = Locate("cloudshell://ann@QUALI:8029/7b3c", []string{script})
	require.NoError(t, err)
	require.True(t, l.Token.IsZero())
	require.Equal(t, "ann", l.User)

	_, err = Locate("cloudshell:", []string{`QUALICONNECTIVITYCONTEXT={"adminPass":"secret`})
	require.ErrorIs(t, err, source.ErrInvalid)
	require.NotContains(t, err.Error(), "secret")
}

func TestOptions(t *testing.T) {
	good := Options{Server: "quali", Reservation: "7b3c", User: "ann"}
	opt, err := good.check()
	require.NoError(t, err)
	require.Equal(t, Pause{2 * time.Second, 5 * time.Second}, opt.Pause)
	for name, spoil := range map[string]func(*Options){
		"no server": func(o *Options) { o.Server = "" }, "a path": func(o *Options) { o.Server = "quali/x" }, "no reservation": func(o *Options) { o.Reservation = "" },
		"nobody": func(o *Options) { o.User = "" }, "scheme": func(o *Options) { o.Scheme = "ftp" }, "insecure http": func(o *Options) { o.Scheme, o.Insecure = "http", true },
		"pause": func(o *Options) { o.Pause = Pause{Least: 2, Most: 1} }, "timeout": func(o *Options) { o.Timeout = -1 }, "port": func(o *Options) { o.Server = "quali:x" },
		"a CA for http": func(o *Options) { o.Scheme, o.CAFile = "http", "ca.pem" },
	} {
		bad := good
		spoil(&bad)
		_, err := Open(bad)
		require.ErrorIs(t, err, source.ErrInvalid, name)
		require.NotContains(t, err.Error(), "secret", name)
	}
}

// The token of the environment is used for a URL without a user, whatever its server; it takes
// precedence over that of the contexts.
func TestTokenOfTheEnvironment(t *testing.T) {
	own := EnvToken + "=own=="
	for _, test := range []struct{ url, token, user string }{
		{"cloudshell://quali/7b3c", "own==", ""},
		{"cloudshell://other/7b3c", "own==", ""},
		{"cloudshell://ann@quali/7b3c", "", "ann"},
		{"cloudshell:", "own==", ""},
	} {
		l, err := Locate(test.url, []string{script, own})
		require.NoError(t, err)
		require.Equal(t, test.token, l.Token.reveal(), test.url)
		require.Equal(t, test.user, l.User, test.url)
	}
	l, err := Locate("cloudshell://quali/7b3c", []string{EnvToken + "="})
	require.NoError(t, err)
	_, err = Open(l.Options)
	require.ErrorContains(t, err, EnvToken)
}
