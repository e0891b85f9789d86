package mongolock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/multilock/go/multilock/source"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]struct{ driver, database, collection, public string }{
		"mongodb://db1/jobs.locks": {driver: "mongodb://db1/jobs", database: "jobs", collection: "locks", public: "mongodb://db1/jobs.locks"},
		"mongodb://db1:27018,db2,[::1]:3/jobs.locks.eu?replicaSet=rs0&w=1": {
			driver: "mongodb://db1:27018,db2,[::1]:3/jobs?replicaSet=rs0&w=1", database: "jobs", collection: "locks.eu",
			public: "mongodb://db1:27018,db2,[::1]:3/jobs.locks.eu",
		},
		"mongodb://ada:s%40cret@db1/jobs.locks?authSource=admin": {
			driver: "mongodb://ada:s%40cret@db1/jobs?authSource=admin", database: "jobs", collection: "locks", public: "mongodb://db1/jobs.locks",
		},
		"mongodb+srv://cluster.example.org/my%20jobs.locks": {
			driver: "mongodb+srv://cluster.example.org/my%20jobs", database: "my jobs", collection: "locks", public: "mongodb+srv://cluster.example.org/my%20jobs.locks",
		},
	} {
		got, err := parseURL(text)
		require.NoError(t, err, text)
		require.Equal(t, want.public, got.Public, text)
		require.Equal(t, []string{want.driver, want.database, want.collection}, []string{got.driver, got.database, got.collection}, text)
	}
}

func TestURLs(t *testing.T) {
	require.NoError(t, opened("mongodb://ada:s3cret@db1,db2/jobs.locks?authSource=admin&retryWrites=true"))
	for _, text := range []string{
		"", "jobs.locks", "http://db1/jobs.locks", "mongodb://", "mongodb:///jobs.locks", "mongodb://db1", "mongodb://db1/", "mongodb://db1/jobs",
		"mongodb://db1/jobs.", "mongodb://db1/.locks", "mongodb://db1/jobs.locks/more", "mongodb://db1/jobs.%zz", "mongodb://db1/jobs.$locks",
		"mongodb://db1:port/jobs.locks", "mongodb://db1/jobs.locks?tls=maybe", "mongodb://db1/jobs.locks?directConnection=true&replicaSet",
	} {
		require.ErrorIs(t, opened(text), source.ErrInvalid, text)
	}
}

// No error about a URL contains the password, or a part of it.
func TestSecretsAreNotRepeated(t *testing.T) {
	for _, text := range []string{
		"mongodb://ada:s3cret@/jobs.locks", "mongodb://ada:s3cret@db1/jobs", "mongodb://ada:s3cret%zz@db1/jobs.locks", "mongodb://ada:s3cret/1@db1/jobs.locks",
		"mongodb://ada:s3cret@db1:port/jobs.locks", "mongodb://a:d:a:s3cret@db1/jobs.locks", "mongodb://db1/jobs.locks?tlsCertificateKeyFilePassword=s3cret&tls=maybe",
		"mongodb://ada:s3cret@db1/jobs.locks?authMechanism=s3cret", "http://ada:s3cret@db1/jobs.locks", "mongodb://ada:s3cret@b@db1/jobs.locks?x",
		"mongodb://ada:s3cret?1@db1/jobs.locks", "mongodb://ada:s3c/jobs.locks?ret@db1/jobs.locks", "mongodb://ada:%s3cret@db1:port/jobs.locks",
	} {
		if err := opened(text); err != nil {
			require.NotContains(t, err.Error(), "s3", text)
		}
	}
}

func opened(text string) error {
	src, err := Open(Options{Place: Place{URL: text}})
	if err != nil {
		return err
	}
	return src.Close()
}

func TestOptionsAreChecked(t *testing.T) {
	const url = "mongodb://127.0.0.1:1/jobs.locks"
	for name, opt := range map[string]Options{
		"no place":          {},
		"a group in two":    {Place: Place{URL: url}, Group: "a/b"},
		"a long group":      {Place: Place{URL: url}, Group: strings.Repeat("x", source.MaxElement+1)},
		"a negative time":   {Place: Place{URL: url, Timeout: -1}},
		"a URL of no place": {Place: Place{URL: "mongodb://127.0.0.1:1"}},
	} {
		_, err := Open(opt)
		require.ErrorIs(t, err, source.ErrInvalid, name)
	}
	src, err := Open(Options{Place: Place{URL: url}, Group: "nightly"})
	require.NoError(t, err, "nobody is asked yet")
	require.Equal(t, "nightly", src.Group())
	require.NotEmpty(t, src.Self().Host)
	require.NoError(t, src.Close())
	_, err = Open(Options{Place: Place{URL: url, Collection: src.collection(locksSuffix)}})
	require.ErrorIs(t, err, source.ErrInvalid, "which of the two?")
}

func TestGuaranteesAreComplete(t *testing.T) {
	src, err := Open(Options{Place: Place{URL: "mongodb://127.0.0.1:1/jobs.locks"}})
	require.NoError(t, err)
	defer src.Close()
	for _, trait := range source.Traits() {
		guarantee, ok := source.GuaranteeOf(src, trait)
		require.True(t, ok, trait)
		require.NotEmpty(t, guarantee.Why, trait)
	}
}
