//go:build unix && !no_mongodb && !no_cloudshell && !no_etcd && !no_postgres

package place

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/cmd/multilock/internal/console"
)

// A user is warned of risks on the path to a server, and not warned without risks.
func TestExposed(t *testing.T) {
	t.Parallel()
	e := &console.Env{Getenv: func(string) string { return "" }, Environ: os.Environ}
	for url, want := range map[string]string{
		"cloudshell://ada@quali/R":                                 "",
		"cloudshell://ada@quali/R?scheme=http":                     "nothing is encrypted on the way to quali:",
		"cloudshell://ada@quali/R?%73cheme=http":                   "nothing is encrypted on the way to quali:",
		"cloudshell://ada@quali/R?insecure=true":                   "any certificate will do for quali:",
		"cloudshell://ada@127.0.0.1:8029/R?scheme=http":            "",
		"cloudshell://ada@[::1]/R?scheme=http":                     "",
		"mongodb://ada@db/a.b":                                     "nothing is encrypted on the way to db:",
		"mongodb://db/a.b":                                         "",
		"mongodb://ada@localhost,127.0.0.1:1,[::1]:2/a.b":          "",
		"mongodb://ada@%2Ftmp%2Fmongodb-27017.sock/a.b":            "",
		"mongodb://ada@localhost,db:27018/a.b":                     "nothing is encrypted on the way to db:27018:",
		"mongodb://ada@db/a.b?tls=true":                            "",
		"mongodb://ada@db/a.b?tlsCAFile=%2Fca.pem":                 "",
		"mongodb://ada@db/a.b?x=y;tls%49nsecure=true;ssl=true":     "any certificate will do for db:",
		"mongodb+srv://ada@db.example/a.b":                         "",
		"mongodb+srv://ada@db.example/a.b?tls=false":               "nothing is encrypted on the way to db.example:",
		"cook+mongodb://ada@db/a.b?period=5m":                      "nothing is encrypted on the way to db:",
		"cook+mongodb+srv://ada@db/a.b?period=5m&tlsInsecure=true": "any certificate will do for db:",
		"mongodb://ada@db/a.b?tls=perhaps":                         "",
		"etcd://ada@db,127.0.0.1:2379/jobs":                        "nothing is encrypted on the way to db:",
		"etcd://db/jobs":                                           "",
		"etcd://ada@db/jobs?tls=true":                              "",
		"etcd://ada@db/jobs?cafile=%2Fca.pem":                      "",
		"etcd://ada@127.0.0.1:2379,[::1]:2/jobs":                   "",
		"postgres://ada@127.0.0.1,db:5433/work":                    "nothing is encrypted on the way to db:5433:",
		"postgres://ada@db/work?sslmode=disable":                   "nothing is encrypted on the way to db:5432:",
		"postgresql://ada@db/work?sslmode=require":                 "any certificate will do for db:5432:",
		"postgres://ada@db/work?sslmode=verify-ca":                 "",
		"postgres://ada@db/work?sslmode=verify-full":               "",
		"postgres://ada@localhost,[::1]:2/work":                    "",
		"cook+etcd://ada@db/jobs?period=5m":                        "nothing is encrypted on the way to db:",
		"cook+etcd://ada@db/jobs?period=5m&tls=true":               "",
		"cook+postgres://ada@db/work?period=5m&sslmode=disable":    "nothing is encrypted on the way to db:5432:",
		"cook+postgres://ada@db/work?period=5m&sslmode=verify-ca":  "",
		"postgres:///work?host=%2Frun%2Fpostgresql":                "",
	} {
		p, err := Known().Find(Asked{Source: &url}, e)
		require.NoError(t, err, url)
		if want == "" {
			require.Empty(t, p.Exposed, url)
		} else {
			require.Contains(t, p.Exposed, want, url)
		}
	}
}

// A password is sent to another host only through TLS, or if the URL allows cleartext.
func TestNoPasswordInTheClear(t *testing.T) {
	t.Parallel()
	e := &console.Env{Getenv: func(name string) string { return map[string]string{EnvPassword: "secret"}[name] }, Environ: os.Environ}
	for url, refused := range map[string]bool{
		"etcd://ada@db/jobs":                                    true,
		"etcd://ada@db/jobs?tls=false":                          false,
		"etcd://ada@db/jobs?tls=true":                           false,
		"etcd://ada@127.0.0.1:1/jobs":                           false,
		"cook+etcd://ada@db/jobs?period=5m":                     true,
		"mongodb://ada@db/a.b":                                  true,
		"mongodb://ada@localhost,db/a.b":                        true,
		"mongodb://ada@db/a.b?tls=false":                        false,
		"mongodb://ada@localhost/a.b":                           false,
		"postgres://ada@db/work":                                true,
		"postgres://ada@db/work?sslmode=prefer":                 true,
		"postgres://ada@db/work?sslmode=disable":                false,
		"postgres://ada@db/work?sslmode=require":                false,
		"postgres:///work?host=%2Frun%2Fpostgresql&user=ada":    false,
		"cook+postgres://ada@db/work?period=5m&sslmode=require": false,
	} {
		p, err := Known().Find(Asked{Source: &url}, e)
		require.NoError(t, err, url)
		require.Equal(t, refused, p.InClear != "", "%s: %s", url, p.InClear)
		if refused {
			_, err := Known().Open(t.Context(), e, p)
			require.ErrorContains(t, err, "unencrypted, so it is not sent", url)
			require.NotContains(t, err.Error(), "secret")
		}
	}
}
