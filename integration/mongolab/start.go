package mongolab

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/FerretDB/FerretDB/ferretdb"
	"go.mongodb.org/mongo-driver/v2/bson"
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

// creating is held while a FerretDB is made, because that writes to a variable of
// its package, whatever the configuration is.
var creating sync.Mutex

// embedded is a FerretDB in this process.
type embedded struct {
	address string
	cancel  context.CancelFunc
	ended   chan struct{}
}

// embed starts a FerretDB with its data in a directory that exists. Its other mode,
// in memory, hangs at the first update of a document that is there.
func embed(dir string) (*embedded, error) {
	data := url.URL{Scheme: "file", OmitHost: true, Path: dir + "/"}
	creating.Lock()
	db, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: "127.0.0.1:0"},
		Handler:   "sqlite",
		SQLiteURL: data.String(),
		Logger:    slog.New(slog.DiscardHandler),
	})
	creating.Unlock()
	if err != nil {
		return nil, fmt.Errorf("start FerretDB in %s: %w", dir, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &embedded{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(e.ended)
		_ = db.Run(ctx) // it never says anything
	}()
	uri, err := url.Parse(db.MongoDBURI()) // waits until it listens
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("the address of FerretDB: %w", err)
	}
	e.address = uri.Host
	return e, nil
}

// stop ends it. The data stays.
func (e *embedded) stop() {
	e.cancel()
	<-e.ended
}

// disguised is the reply to a buildInfo without what says that this is FerretDB.
func disguised(reply bson.Raw) (bson.Raw, error) {
	var elements bson.D
	if err := bson.Unmarshal(reply, &elements); err != nil {
		return nil, err
	}
	return bson.Marshal(slices.DeleteFunc(elements, func(e bson.E) bool { return strings.HasPrefix(e.Key, "ferretdb") }))
}

// Start makes the server answer again after Stop, with the data that it had and
// under the same URI. Open has done it once.
func (s *Server) Start() error {
	s.changing.Lock()
	defer s.changing.Unlock()
	if s.address() != "" {
		return nil
	}
	if s.place.real != nil {
		s.setAddress(s.place.real.Host)
		return nil
	}
	embedded, err := embed(s.place.dir)
	if err != nil {
		return err
	}
	s.embedded = embedded
	s.setAddress(embedded.address)
	return nil
}

// Stop ends all connections, and refuses new ones until Start. Commands that are
// held up are not carried out. A real server behind the proxy runs on unseen.
//
// Neither an Injector nor a Pause may wait for it.
func (s *Server) Stop() {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.setAddress("")
	s.CutConnections()
	s.dropBackends()
	if s.embedded != nil {
		s.embedded.stop()
		s.embedded = nil
	}
}

// dropBackends ends the connections to the server behind the proxy, after the
// command that the embedded server works on.
func (s *Server) dropBackends() {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.backend.Close()
	}
}

func (s *Server) address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backend
}

func (s *Server) setAddress(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backend = address
}
