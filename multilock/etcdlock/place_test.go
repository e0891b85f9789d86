package etcdlock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]struct {
		endpoints                      []string
		prefix, user, password, public string
	}{
		"etcd://db1/jobs": {endpoints: []string{"http://db1:2379"}, prefix: "jobs", public: "etcd://db1/jobs"},
		"etcd://db1:12,db2,[::1],[::1]:3,10.0.0.1/a/b%2Fc%20d/": {
			endpoints: []string{"http://db1:12", "http://db2:2379", "http://[::1]:2379", "http://[::1]:3", "http://10.0.0.1:2379"},
			prefix:    "a/b/c d", public: "etcd://db1:12,db2,[::1],[::1]:3,10.0.0.1/a/b%2Fc%20d/",
		},
		"etcd://ada:s%40c%2Fret@db1/jobs?tls=false": {
			endpoints: []string{"http://db1:2379"}, prefix: "jobs", user: "ada", password: "s@c/ret", public: "etcd://db1/jobs",
		},
		"etcd://ada:@db1/jobs": {endpoints: []string{"http://db1:2379"}, prefix: "jobs", user: "ada", public: "etcd://db1/jobs"},
	} {
		got, err := parseURL(text)
		require.NoError(t, err, text)
		require.Equal(t, want.endpoints, got.endpoints, text)
		require.Equal(t, []string{want.prefix, want.user, want.password, want.public}, []string{got.prefix, got.user, got.password, got.Public}, text)
		require.Nil(t, got.tls, text)
	}
	for _, query := range []string{"tls=true", "servername=db", "tls=true&servername=db"} {
		got, err := parseURL("etcd://ada:s@db1,db2/jobs?" + query)
		require.NoError(t, err, query)
		require.Equal(t, []string{"https://db1:2379", "https://db2:2379"}, got.endpoints)
		require.NotNil(t, got.tls)
		require.False(t, got.tls.InsecureSkipVerify)
	}
}

// Invalid URLs are rejected with these messages, none of which contains the password.
func TestRefusedURLs(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.pem")
	require.NoError(t, os.WriteFile(broken, []byte("no certificate"), 0o600))
	for text, want := range map[string]string{
		"":                                       "write etcd://",
		"http://db1/jobs":                        "write etcd://",
		"etcd://":                                "no host",
		"etcd:///jobs":                           "no host",
		"etcd://db1":                             "prefix",
		"etcd://db1/":                            "prefix",
		"etcd://db1//":                           "prefix",
		"etcd://db1/a%00":                        "prefix",
		"etcd://db1/a%0ab":                       "prefix",
		"etcd://db1/%ff":                         "prefix",
		"etcd://db1/%zz":                         "prefix",
		"etcd://db1/jobs#x":                      "%23",
		"etcd://db1/" + strings.Repeat("x", 501): "500 bytes",
		"etcd://db1,/jobs":                       "is no host",
		"etcd://db1,,db2/jobs":                   "is no host",
		"etcd://:2379/jobs":                      "is no host",
		"etcd://a b/jobs":                        "is no host",
		"etcd://[::1/jobs":                       "is no host",
		"etcd://a:b:2/jobs":                      "is no host",
		"etcd://[db1]:x/jobs":                    "port",
		"etcd://db1:/jobs":                       "port",
		"etcd://db1:port/jobs":                   "port",
		"etcd://db1:0/jobs":                      "port",
		"etcd://db1:65536/jobs":                  "port",
		"etcd://db1:-1/jobs":                     "port",
		"etcd://ada:s3c/ret@db1/jobs":            "percent-encoded",
		"etcd://ada:s3c?ret@db1/jobs":            "percent-encoded",
		"etcd://ada:s3c%zz@db1/jobs":             "percent-encoded",
		"etcd://db1/jobs?tls=maybe":              "tls=true or tls=false",
		"etcd://db1/jobs?tsl=true":               "unknown",
		"etcd://db1/jobs?%zz":                    "parameters",
		"etcd://db1/jobs?tls=false&cafile=x":     "contradicts",
		"etcd://db1/jobs?cafile=/nowhere":        "read cafile",
		"etcd://db1/jobs?cafile=" + broken:       "there is no certificate in",
		"etcd://db1/jobs?certfile=" + broken:     "needed together",
		"etcd://db1/jobs?keyfile=" + broken:      "needed together",
		"etcd://db1/jobs?certfile=" + broken + "&keyfile=" + broken: "read the client's certificate",
	} {
		_, err := Open(Options{Place: Place{URL: text}})
		require.ErrorIs(t, err, source.ErrInvalid, text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "s3c", text)
	}
	_, err := Open(Options{Place: Place{URL: "etcd://db1/jobs"}, Group: "a/b"})
	require.ErrorIs(t, err, source.ErrInvalid)
	_, err = Open(Options{Place: Place{URL: "etcd://db1/jobs", Timeout: -1}})
	require.ErrorIs(t, err, source.ErrInvalid)
}

// No error about a URL contains the password; a valid URL names hosts and a prefix, and is
// equivalent without the user.
func FuzzURL(f *testing.F) {
	for _, rest := range []string{
		"db1/jobs?tls=true", "db1:2,[::1]:3/jobs.locks/eu", "db1:port/jobs", "/jobs", "db1/jobs%zz", "db1/jobs?servername=x&tls=maybe", "b@db1/a.b", "db1/a?x@", "[::1/a", "db1/%2f#",
	} {
		f.Add(rest)
	}
	const secret = "s3cr3tive"
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(rest, secret[:3]) || strings.Contains(strings.ToLower(rest), "file") {
			return // it would read the files that the URL names
		}
		a, err := parseURL("etcd://ada:" + secret + "@" + rest)
		if err != nil {
			require.NotContains(t, err.Error(), secret[:3])
			return
		}
		require.NotContains(t, a.Public, secret[:3])
		require.True(t, strings.HasPrefix(a.user+a.password, "ada"+secret))
		require.NotEmpty(t, a.endpoints)
		require.True(t, isPrefix(a.prefix))
		again, err := parseURL(a.Public)
		require.NoError(t, err)
		require.Equal(t, a.prefix, again.prefix)
		require.Len(t, again.endpoints, len(a.endpoints))
	})
}
