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

// ServerVariable is the environment variable with the URI of a real server.
const ServerVariable = "MULTILOCK_TEST_MONGODB_URI"

// Start starts a server for the duration of a test: the real one that ServerVariable names, else the
// embedded one. A test with ReplicaSet needs the embedded server, and is skipped if a real one is
// named.
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

// dropDatabase removes a test's database from a real server.
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

// creating serialises calls of ferretdb.New, which writes to a package variable.
var creating sync.Mutex

// embedded is a FerretDB in this process.
type embedded struct {
	address string
	cancel  context.CancelFunc
	ended   chan struct{}
}

// embed starts a FerretDB with its data in an existing directory. FerretDB's in-memory mode hangs at
// the first update of an existing document.
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
		_ = db.Run(ctx) // it never reports an error
	}()
	uri, err := url.Parse(db.MongoDBURI()) // blocks until FerretDB listens
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("the address of FerretDB: %w", err)
	}
	e.address = uri.Host
	return e, nil
}

// stop stops FerretDB. Its data stays.
func (e *embedded) stop() {
	e.cancel()
	<-e.ended
}

// disguised removes the fields that identify FerretDB from a reply to buildInfo.
func disguised(reply bson.Raw) (bson.Raw, error) {
	var elements bson.D
	if err := bson.Unmarshal(reply, &elements); err != nil {
		return nil, err
	}
	return bson.Marshal(slices.DeleteFunc(elements, func(e bson.E) bool { return strings.HasPrefix(e.Key, "ferretdb") }))
}

// Start restarts the server after Stop, with its old data and the same URI. Open has already started it
// once.
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

// Stop closes all connections and rejects new ones until Start. Delayed commands are not executed. A
// real server behind the proxy keeps running.
//
// Neither an Injector nor a Pause may wait for Stop.
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

// dropBackends closes the connections to the server behind the proxy, after the embedded server has
// finished its current command.
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
