package s3lock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzNames: a key is found again by the name of its object, and no element is longer than a file's
// name may be.
func FuzzNames(f *testing.F) {
	for _, key := range []string{"lock/night/nightly", "lock//.hidden", "queue/g/n/lock//00000000000000000001-x", "history/g/000-\x01", "a/=/+/" + strings.Repeat("é", 300), "lock/g/"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		name := escape(key)
		for element := range strings.SplitSeq(name, "/") {
			require.LessOrEqual(t, len(element), widest+1)
		}
		if strings.HasSuffix(key, "/") {
			return // a prefix
		}
		again, ok := unescape(name)
		require.True(t, ok)
		require.Equal(t, key, again)
	})
}

func TestParseURL(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	for text, want := range map[string]address{
		"s3://bucket/jobs?region=eu-central-1":            {bucket: "bucket", prefix: "jobs/", endpoint: amazon, region: "eu-central-1", hosted: true},
		"s3://bucket/a/b/?endpoint=localhost:1":           {bucket: "bucket", prefix: "a/b/", endpoint: "localhost:1", region: "us-east-1"},
		"s3://bucket/a?endpoint=[::1]:1&tls=true":         {bucket: "bucket", prefix: "a/", endpoint: "[::1]:1", region: "us-east-1"},
		"s3://bucket/a?endpoint=ceph&style=host&region=x": {bucket: "bucket", prefix: "a/", endpoint: "ceph", region: "x", hosted: true},
		"s3://bucket/a?endpoint=10.0.0.1:80&tls=false":    {bucket: "bucket", prefix: "a/", endpoint: "10.0.0.1:80", region: "us-east-1"},
	} {
		got, err := parseURL(text)
		require.NoError(t, err, text)
		secure := !strings.Contains(text, "localhost") && !strings.Contains(text, "tls=false")
		require.Equal(t, secure, got.tls != nil, text)
		want.URL, want.tls = got.URL, got.tls
		require.Equal(t, want, got, text)
	}
	for text, want := range map[string]string{
		"s3://bucket":                               "must name a prefix",
		"s3://bucket/jobs":                          "name the bucket's region",
		"s3://Bucket/jobs":                          "the name of a bucket has",
		"s3://key:secret@bucket/jobs?region=x":      "put them into the environment",
		"s3://bucket/a b?region=x":                  "must name a prefix",
		"s3://bucket/a?regoin=x":                    "the parameter \"regoin\" is unknown",
		"s3://bucket/a?region=x&tls=false":          "Amazon's endpoints are used with TLS",
		"s3://bucket/a?endpoint=http://h":           "without a scheme",
		"s3://bucket/a?endpoint=h&cafile=/none.pem": "read cafile",
		"s3://bucket/a?endpoint=h&style=virtual":    "write style=path or style=host",
		"s3://bucket/a?endpoint=h&sse=aes":          "write sse=AES256 or sse=aws:kms",
		"s3://bucket/a?endpoint=h&kmskey=k":         "kmskey needs sse=aws:kms",
	} {
		_, err := parseURL(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "secret")
	}
}
