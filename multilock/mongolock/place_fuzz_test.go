package mongolock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// No error about a URL contains the password; a valid URL names a collection.
func FuzzURL(f *testing.F) {
	for _, rest := range []string{"db1/jobs.locks?authSource=admin", "db1:27018,[::1]:3/jobs.locks.eu", "db1:port/jobs.locks", "/jobs.locks", "db1/jobs.%zz", "db1/jobs.locks?tls=maybe", "b@db1/a.b", "db1/a.b?x@"} {
		f.Add(rest)
	}
	const secret = "s3cr3tive"
	f.Fuzz(func(t *testing.T, rest string) {
		if strings.Contains(rest, secret[:3]) || strings.Contains(strings.ToLower(rest), "file") {
			return // the driver would read the files that the URL names
		}
		a, err := parseURL("mongodb://ada:" + secret + "@" + rest)
		if err != nil {
			require.NotContains(t, err.Error(), secret[:3])
			return
		}
		require.NotContains(t, a.Public+a.bare, secret[:3])
		require.NotEmpty(t, a.database)
		require.NotEmpty(t, a.collection)
		again, err := parseURL(a.Public)
		require.NoError(t, err)
		require.Equal(t, []string{a.database, a.collection}, []string{again.database, again.collection})
		if _, err := a.clientOptions(); err != nil {
			require.NotContains(t, err.Error(), secret[:3])
		}
	})
}
