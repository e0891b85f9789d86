package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// serve runs the command until the test ends it, and gives the URI that it said.
func serve(t *testing.T, args ...string) (uri string, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, args, in)
		in.CloseWithError(io.EOF)
		ended <- err
	}()
	uri, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("said nothing:", <-ended)
	}
	return strings.TrimSpace(uri), func() {
		cancel()
		require.NoError(t, <-ended)
	}
}

func TestServesUntilItIsEnded(t *testing.T) {
	args := []string{"-listen", "127.0.0.1:0", "-dir", t.TempDir()}
	uri, end := serve(t, args...)
	_, err := collection(t, uri).InsertOne(t.Context(), bson.M{"_id": "kept"})
	require.NoError(t, err)
	end()

	uri, end = serve(t, append(args, "-replica-set")...)
	defer end()
	require.Contains(t, uri, "replicaSet=")
	require.NoError(t, collection(t, uri).FindOne(t.Context(), bson.M{"_id": "kept"}).Err())
}

func collection(t *testing.T, uri string) *mongo.Collection {
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database("test").Collection("c")
}

func TestRefusesWhatItDoesNotKnow(t *testing.T) {
	require.Error(t, run(t.Context(), []string{"-directory", "x"}, io.Discard))
}
