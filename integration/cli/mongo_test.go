package cli_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/multilock/go/integration/mongolab"
	"github.com/multilock/go/multilock"
	"github.com/multilock/go/multilock/mongolock"
)

func collection(t *testing.T, server *mongolab.Server) *mongo.Collection {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(server.Database()).Collection("locks")
}

// Without -g, multilock shares its locks with programs that use only {_id, locked}.
func TestMongoSharesWithTheRecipe(t *testing.T) {
	t.Parallel()
	s, server := mongoStation(t)
	locks := collection(t, server)
	holder := s.hold("-n", "nightly")
	var found bson.M
	require.NoError(t, locks.FindOne(t.Context(), bson.M{"_id": "nightly"}).Decode(&found))
	require.Equal(t, s.lock("nightly").Token, found["locked"])
	require.NotContains(t, found, "group")
	take := func() error {
		_, err := locks.UpdateOne(t.Context(), bson.M{"_id": "nightly", "locked": false}, bson.M{"$set": bson.M{"locked": true}}, options.UpdateOne().SetUpsert(true))
		return err
	}
	require.True(t, mongo.IsDuplicateKeyError(take()))
	freed, err := locks.UpdateOne(t.Context(), bson.M{"_id": "nightly", "locked": true}, bson.M{"$set": bson.M{"locked": false}})
	require.NoError(t, err)
	require.Zero(t, freed.MatchedCount, "the recipe cannot unlock another holder's lock")
	require.Zero(t, holder.end().code)
	require.NoError(t, take())
	got := s.run("run", "-n", "nightly", "--", "true")
	require.Equal(t, 121, got.code)
	require.Contains(t, got.stderr, `lock "nightly" is held by an unknown process`)
	s.must("break", "--force", "--now", "nightly")
	s.must("run", "-n", "nightly", "-g", ".locks", "--", "true")
	require.NoError(t, locks.FindOne(t.Context(), bson.M{"_id": ".locks/nightly"}).Err())
}

// If every host refuses the connection, multilock does not wait for a primary: waiting for an election
// would make this test hang.
func TestMongoRefusesAtOnce(t *testing.T) {
	t.Parallel()
	place := mongolock.Place{URL: "mongodb://" + deaf(t) + "," + deaf(t) + "/a.b?replicaSet=rs0&serverSelectionTimeoutMS=3600000", Timeout: time.Hour}
	src, err := mongolock.Open(mongolock.Options{Place: place})
	require.NoError(t, err)
	for range 2 {
		_, err = multilock.TryAcquire(t.Context(), src, "x", multilock.Options{})
		require.ErrorContains(t, err, "connection refused")
		require.ErrorContains(t, err, "no server to talk to: 127.0.0.1:")
		require.NotErrorIs(t, err, multilock.ErrUnsure)
	}
	require.NoError(t, src.Close())
}

// doctor looks for indexes that would delete locks. The embedded server has no such index, so mongolock
// tests the finding.
func TestMongoExpiry(t *testing.T) {
	t.Parallel()
	s, _ := mongoStation(t)
	require.Contains(t, s.run("doctor").stdout, "ok       TTL index: none")
}

func TestMongoTroubles(t *testing.T) {
	t.Parallel()
	s, server := mongoStation(t)
	good := sourceOf(s)
	secret := strings.Replace(good, "mongodb://", "mongodb://ada:"+escaped+"@", 1)
	honest := mongolab.Start(t, mongolab.Options{})
	for name, c := range map[string]struct {
		vars []string
		want string
	}{
		"wrong password": {[]string{"MULTILOCK_SOURCE=" + secret}, "check the user, the password and authSource"},
		"no password": {
			[]string{"MULTILOCK_SOURCE=" + strings.Replace(good, "mongodb://", "mongodb://ada@", 1)},
			"there is no password for the user ada: put it into the variable MULTILOCK_PASSWORD",
		},
		"nobody listens": {
			[]string{"MULTILOCK_SOURCE=mongodb://" + deaf(t) + "/a.b", "MULTILOCK_PASSWORD=" + password},
			"connection refused (is the server running, and can this host reach it?",
		},
		"no collection": {[]string{"MULTILOCK_SOURCE=mongodb://" + deaf(t) + "/a"}, "it must name the database and the collection"},
		"FerretDB":      {[]string{"MULTILOCK_SOURCE=" + mongoURL(honest, "locks")}, "which does not update a document in one step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "FerretDB" && honest.Real() || name == "wrong password" && server.Real() {
				t.Skip("this is about the embedded server")
			}
			s := &station{t, append(slices.Clip(s.vars), c.vars...), s.secrets}
			s.requireTrouble(c.want)
		})
	}
}
