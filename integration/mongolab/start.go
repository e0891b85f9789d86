package mongolab

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// ServerVariable names the environment variable with the URI of a real server.
const ServerVariable = "MULTILOCK_TEST_MONGODB_URI"

// Start starts a server that ends with the test: the real one that ServerVariable
// names, else the embedded one. A test that has to have the embedded one, because
// of ReplicaSet, is skipped if a real one is named.
func Start(tb testing.TB, opt Options) *Server {
	tb.Helper()
	if opt.Server == "" {
		opt.Server = os.Getenv(ServerVariable)
	}
	if opt.Server != "" && opt.ReplicaSet {
		tb.Skip("this is about the embedded server, and " + ServerVariable + " names a real one")
	}
	if opt.Dir == "" {
		opt.Dir = tb.TempDir()
	}
	s, err := Open(opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// dropDatabase removes what a test left on a real server.
func dropDatabase(server *url.URL, name string) (err error) {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(server.String()).SetDirect(true))
	if err != nil {
		return fmt.Errorf("mongolab: drop %s: %w", name, err)
	}
	defer client.Disconnect(ctx)
	if err := client.Database(name).Drop(ctx); err != nil {
		return fmt.Errorf("mongolab: drop %s: %w", name, err)
	}
	return nil
}
