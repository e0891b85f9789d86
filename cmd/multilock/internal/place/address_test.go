//go:build unix

package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A displayed URL has no secret, and leads to the same source when it is pasted.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"cloudshell://ada@host:8029/R1?domain=Global&alias=M":                     "cloudshell://ada@host:8029/R1?domain=Global&alias=M",
		"cloudshell://ada:top@host:8029/R1?domain=Global&alias=M#f":               "cloudshell://ada@host:8029/R1?domain=Global&alias=M",
		"mongodb://ada:t%40p@a:1,b:2/db.coll?replicaSet=x":                        "mongodb://ada@a:1,b:2/db.coll?replicaSet=x",
		"MongoDB+SRV://ada:t:o:p@host/db.coll":                                    "mongodb+srv://ada@host/db.coll",
		"mongodb://ada:t@p@host/db.coll":                                          "mongodb://ada@host/db.coll",
		"mongodb://:top@host/db":                                                  "mongodb://host/db",
		"mongodb://[::1]:27017/db.coll":                                           "mongodb://[::1]:27017/db.coll",
		"mongodb://host/db?Password=top&tls=true&access_token=top":                "mongodb://host/db?tls=true",
		"mongodb://host/db?tlsCertificateKeyFilePassword=top":                     "mongodb://host/db",
		"mongodb://h/d.c?tls=true;tlsCertificateKeyFilePassword=top":              "mongodb://h/d.c?tls=true",
		"mongodb://h/d.c?tls%43ertificateKeyFilePa%73sword=top":                   "mongodb://h/d.c",
		"mongodb://h/d.c?%53SLClientCertificateKeyPassword=top":                   "mongodb://h/d.c",
		"mongodb://h/d.c?auth%4dechanismProperties=A:b,AWS_SESSION_TOKEN:top;w=1": "mongodb://h/d.c?w=1",
		"mongodb://h/d.c?%zz=top":                                                 "mongodb://h/d.c",
		"cook+mongodb://h/d.c?period=5m;tlsCertificateKeyFilePassword=top":        "cook+mongodb://h/d.c?period=5m",
		"cook+file:///shared/locks?period=5m":                                     "cook+file:///shared/locks?period=5m",
		"cook+file:///shared/a@b?period=5m":                                       "cook+file:///shared/a@b?period=5m",
		"file:/a@b/c":                                                             "file:/a@b/c",
		"x:y":                                                                     "x:y",
		"/tmp":                                                                    "/tmp",
		"":                                                                        "",
		"x://ada:1/top@h/db":                                                      "x:...",
		"x://ada:1?top@h/db":                                                      "x:...",
		"x://ada:1#top@h/db":                                                      "x:...",
		"x://a@b.c:top@h/db":                                                      "x:...",
		"1x://ada:top@h/db":                                                       "1x:...",
		"x://ada:1/\ntop@h/d":                                                     "x:...",
	} {
		require.Equal(t, want, publicURL(url), url)
		require.NotContains(t, publicURL(url), "top")
		again, ok := parseAddress(publicURL(url))
		require.True(t, !ok || !again.hasSecrets(), url)
		require.Equal(t, want, publicURL(want), "it is its own public form")
	}
}

// Jobs often print their environment.
func TestEnvironmentOfAJobHasNoSecrets(t *testing.T) {
	t.Parallel()
	environ := []string{
		"HOME=/root", "MULTILOCK_PASSWORD=top", "MULTILOCK_PASSWORD_FILE=/etc/p", "MULTILOCK_SOURCE=mongodb://ada:top@h/a.b?tls=true", "EMPTY=", "strange",
	}
	require.Equal(t, []string{
		"HOME=/root", "MULTILOCK_PASSWORD_FILE=/etc/p", "MULTILOCK_SOURCE=mongodb://ada@h/a.b?tls=true", "EMPTY=", "strange",
	}, JobEnviron(environ))
}
