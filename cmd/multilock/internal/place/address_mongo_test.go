//go:build unix && !no_mongodb

package place

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// A secret in any form that MongoDB's driver finds is found here as well, and is not displayed.
func FuzzMongoSecrets(f *testing.F) {
	for _, seed := range []string{
		"tlsCertificateKeyFilePassword=top", "a=b;tls%43ertificateKeyFilePassword=top", "%53SLCLIENTCERTIFICATEKEYPASSWORD=top&w=1",
		"authMechanism=MONGODB-AWS;authMechanismProperties=AWS_SESSION_TOKEN:top", "auth%4dechanismProperties=A:b", "a&;=&%zz=top", "appName=x;y=z",
		"tlsCertificate\u212aeyFilePassword=top", "x=1#;tlsCertificateKeyFilePassword=top",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		a, ok := parseAddress("mongodb://h/d.c?" + query)
		if !ok || strings.Contains(query, "#") {
			return // the rest is not part of the URL, and not passed to the driver
		}
		for text, may := range map[string]bool{a.String(): a.hasSecrets(), a.public(): false} {
			read, err := connstring.Parse(text)
			if err != nil {
				continue
			}
			secret := read.SSLClientCertificateKeyPasswordSet || read.AuthMechanismPropertiesSet || read.PasswordSet
			require.False(t, secret && !may, text)
		}
	})
}
